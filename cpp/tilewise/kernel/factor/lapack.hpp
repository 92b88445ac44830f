// The few BLAS and LAPACK symbols that decompositions call, under whatever name the linked library gives them, and how
// many threads it uses.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "tilewise/base/error.hpp"
#include "tilewise/kernel/blas.hpp"

extern "C" {
// The Fortran interface; matrices are column-major.
#define TILEWISE_LAPACK_OF_ANY(p)                                                                                   \
    void TILEWISE_BLAS(p##potrf_)(const char*, const int*, void*, const int*, int*);                                \
    void TILEWISE_BLAS(p##geqrf_)(const int*, const int*, void*, const int*, void*, void*, const int*, int*);       \
    void TILEWISE_BLAS(p##larft_)(const char*, const char*, const int*, const int*, const void*, const int*,        \
                                  const void*, void*, const int*);                                                  \
    void TILEWISE_BLAS(p##larfb_)(const char*, const char*, const char*, const char*, const int*, const int*,       \
                                  const int*, const void*, const int*, const void*, const int*, void*, const int*,  \
                                  void*, const int*);                                                               \
    void TILEWISE_BLAS(p##gemv_)(const char*, const int*, const int*, const void*, const void*, const int*,         \
                                 const void*, const int*, const void*, void*, const int*);                          \
    void TILEWISE_BLAS(p##trmm_)(const char*, const char*, const char*, const char*, const int*, const int*,        \
                                 const void*, const void*, const int*, void*, const int*);                          \
    void TILEWISE_BLAS(p##tpqrt2_)(const int*, const int*, const int*, void*, const int*, void*, const int*, void*, \
                                   const int*, int*);
TILEWISE_LAPACK_OF_ANY(s)
TILEWISE_LAPACK_OF_ANY(d)
TILEWISE_LAPACK_OF_ANY(z)
#undef TILEWISE_LAPACK_OF_ANY
#define TILEWISE_LAPACK_OF_TYPE(p)                                                                                    \
    void TILEWISE_BLAS(p##syrk_)(const char*, const char*, const int*, const int*, const void*, const void*,          \
                                 const int*, const void*, void*, const int*);                                         \
    void TILEWISE_BLAS(p##syevd_)(const char*, const char*, const int*, void*, const int*, void*, void*, const int*,  \
                                  int*, const int*, int*);                                                            \
    void TILEWISE_BLAS(p##sytrd_)(const char*, const int*, void*, const int*, void*, void*, void*, void*, const int*, \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##sterf_)(const int*, void*, void*, int*);                                                    \
    void TILEWISE_BLAS(p##stedc_)(const char*, const int*, void*, void*, void*, const int*, void*, const int*, int*,  \
                                  const int*, int*);                                                                  \
    void TILEWISE_BLAS(p##geqp3_)(const int*, const int*, void*, const int*, int*, void*, void*, const int*, int*);   \
    void TILEWISE_BLAS(p##ormqr_)(const char*, const char*, const int*, const int*, const int*, const void*,          \
                                  const int*, const void*, void*, const int*, void*, const int*, int*);               \
    void TILEWISE_BLAS(p##gesvj_)(const char*, const char*, const char*, const int*, const int*, void*, const int*,   \
                                  void*, const int*, void*, const int*, void*, const int*, int*);                     \
    void TILEWISE_BLAS(p##gesdd_)(const char*, const int*, const int*, void*, const int*, void*, void*, const int*,   \
                                  void*, const int*, void*, const int*, int*, int*);                                  \
    void TILEWISE_BLAS(p##geqrt3_)(const int*, const int*, void*, const int*, void*, const int*, int*);               \
    void TILEWISE_BLAS(p##bdsdc_)(const char*, const char*, const int*, void*, void*, void*, const int*, void*,       \
                                  const int*, void*, int*, void*, int*, int*);                                        \
    void TILEWISE_BLAS(p##lasd0_)(const int*, const int*, void*, void*, void*, const int*, void*, const int*,         \
                                  const int*, int*, void*, int*);                                                     \
    void TILEWISE_BLAS(p##laed4_)(const int*, const int*, const void*, const void*, void*, const void*, void*, int*); \
    void TILEWISE_BLAS(p##lasd4_)(const int*, const int*, const void*, const void*, void*, const void*, void*, void*, \
                                  int*);                                                                              \
    void TILEWISE_BLAS(p##gejsv_)(const char*, const char*, const char*, const char*, const char*, const char*,       \
                                  const int*, const int*, void*, const int*, void*, void*, const int*, void*,         \
                                  const int*, void*, const int*, int*, int*);
TILEWISE_LAPACK_OF_TYPE(s)
TILEWISE_LAPACK_OF_TYPE(d)
#undef TILEWISE_LAPACK_OF_TYPE
// Only OpenBLAS has it; a null address means another library.
int TILEWISE_BLAS(openblas_get_num_threads)() __attribute__((weak));
}

namespace tilewise::kernel {

/// BLAS and LAPACK count in 32 bits: UsageError for what is more.
inline int lapack_int(std::int64_t value) {
    if (value > std::numeric_limits<int>::max()) {
        throw UsageError("BLAS and LAPACK use 32-bit indices and cannot take " + std::to_string(value) +
                         " numbers at once; use more ranks or fewer components");
    }
    return static_cast<int>(value);
}

/// What a routine says at its end: anything but 0 is a fault of ours, as all that it is given is finite.
inline void check_lapack(int info, const char* routine) {
    if (info != 0) {
        throw InternalError(std::string("LAPACK's ") + routine + " failed (info " + std::to_string(info) +
                            "), a finite matrix was expected");
    }
}

/// The BLAS uses so many threads while this object lives. The setting belongs to the whole process: make one in the
/// thread that starts others.
class BlasThreads {
public:
    explicit BlasThreads(int threads) {
        if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr && TILEWISE_BLAS(openblas_get_num_threads) != nullptr) {
            before_ = TILEWISE_BLAS(openblas_get_num_threads)();
            if (before_ != threads) {
                TILEWISE_BLAS(openblas_set_num_threads)(threads);
            }
            now_ = threads;
        }
    }
    BlasThreads(const BlasThreads&) = delete;
    BlasThreads& operator=(const BlasThreads&) = delete;
    ~BlasThreads() {
        if (before_ != now_) {
            TILEWISE_BLAS(openblas_set_num_threads)(before_);
        }
    }

private:
    int before_ = 0, now_ = 0;
};

}  // namespace tilewise::kernel
