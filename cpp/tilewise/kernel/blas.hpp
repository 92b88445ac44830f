// The few BLAS symbols that we call, under whatever name the linked library gives them.
#pragma once

#ifndef TILEWISE_BLAS_PREFIX
#define TILEWISE_BLAS_PREFIX
#endif
#define TILEWISE_JOIN_(prefix, name) prefix##name
#define TILEWISE_JOIN(prefix, name) TILEWISE_JOIN_(prefix, name)
#define TILEWISE_BLAS(name) TILEWISE_JOIN(TILEWISE_BLAS_PREFIX, name)

extern "C" {
// The Fortran interface, because every BLAS has it; matrices are column-major there.
void TILEWISE_BLAS(sgemm_)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                           const int*, const void*, const int*, const void*, void*, const int*);
void TILEWISE_BLAS(dgemm_)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                           const int*, const void*, const int*, const void*, void*, const int*);
void TILEWISE_BLAS(cgemm_)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                           const int*, const void*, const int*, const void*, void*, const int*);
void TILEWISE_BLAS(zgemm_)(const char*, const char*, const int*, const int*, const int*, const void*, const void*,
                           const int*, const void*, const int*, const void*, void*, const int*);
void TILEWISE_BLAS(ssyrk_)(const char*, const char*, const int*, const int*, const void*, const void*, const int*,
                           const void*, void*, const int*);
void TILEWISE_BLAS(dsyrk_)(const char*, const char*, const int*, const int*, const void*, const void*, const int*,
                           const void*, void*, const int*);
void TILEWISE_BLAS(csyrk_)(const char*, const char*, const int*, const int*, const void*, const void*, const int*,
                           const void*, void*, const int*);
void TILEWISE_BLAS(zsyrk_)(const char*, const char*, const int*, const int*, const void*, const void*, const int*,
                           const void*, void*, const int*);
// Only OpenBLAS has these; a null address means another library.
void TILEWISE_BLAS(openblas_set_num_threads)(int) __attribute__((weak));
char* TILEWISE_BLAS(openblas_get_corename)() __attribute__((weak));
char* TILEWISE_BLAS(openblas_get_config)() __attribute__((weak));
}
