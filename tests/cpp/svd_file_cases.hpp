// What the tests of the randomized decomposition and of the proof share: matrices, their files, and what LAPACK and
// plain loops say of both.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <memory>

#include "io_cases.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/kernel/codec/convert.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/svd/proof.hpp"

namespace tilewise::test::svd_files {

using Numbers = std::vector<double>;

inline std::size_t index_of(std::int64_t value) { return static_cast<std::size_t>(value); }

/// A matrix, row by row.
struct FileMatrix {
    std::int64_t rows = 0, columns = 0;
    Numbers numbers{};

    double& operator()(std::int64_t i, std::int64_t j) { return numbers[index_of(i * columns + j)]; }
    double operator()(std::int64_t i, std::int64_t j) const { return numbers[index_of(i * columns + j)]; }
};

struct Factors {
    FileMatrix u, vt;
    Numbers s;
};

/// Row by row A is Aᵀ column by column, and U and Vᵀ change places.
inline Factors by_lapack(const FileMatrix& a) {
    const std::int64_t k = std::min(a.rows, a.columns);
    Factors d{{a.rows, k, Numbers(index_of(a.rows * k))},
              {k, a.columns, Numbers(index_of(a.columns * k))},
              Numbers(index_of(k))};
    Numbers copy = a.numbers;
    kernel::gesdd(a.columns, a.rows, copy.data(), a.columns, d.s.data(), d.vt.numbers.data(), d.u.numbers.data(), 1);
    return d;
}

inline FileMatrix normal_matrix(std::int64_t rows, std::int64_t columns) {
    FileMatrix a{rows, columns, {}};
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            a.numbers.push_back(
                normal(random_bits(row_key(11, static_cast<std::uint64_t>(i)), static_cast<std::uint64_t>(j))));
        }
    }
    return a;
}

/// With these singular values.
inline FileMatrix matrix_of(std::int64_t rows, std::int64_t columns, double (*sigma)(std::int64_t)) {
    const Factors d = by_lapack(normal_matrix(rows, columns));
    FileMatrix a{rows, columns, Numbers(index_of(rows * columns))};
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < columns; ++j) {
            for (std::int64_t k = 0; k < std::ssize(d.s); ++k) {
                a(i, j) += d.u(i, k) * sigma(k) * d.vt(k, j);
            }
        }
    }
    return a;
}

inline double halves(std::int64_t k) { return std::ldexp(1.0, static_cast<int>(-k)); }
inline double slow(std::int64_t k) { return 1.0 / static_cast<double>(1 + k); }

/// Files of one matrix and its decomposition.
struct Case {
    const mpi::Communicator& comm;
    FileMatrix a;
    Dtype input, output;
    std::int64_t count;
    Scratch a_file, u_file, s_file, vt_file;
    io::Region region{};
    svd::Files files{};
    svd::Options options{};
    int threads = 1;

    Case(const mpi::Communicator& c, const FileMatrix& matrix, std::int64_t components, Dtype dtype = Dtype::float64,
         bool by_columns = false)
        : comm(c),
          a(matrix),
          input(dtype),
          output(dtype == Dtype::float32 ? Dtype::float32 : Dtype::float64),
          count(components),
          a_file(c, ".svd.a"),
          u_file(c, ".svd.u"),
          s_file(c, ".svd.s"),
          vt_file(c, ".svd.vt") {
        region = made(a_file, a.rows, a.columns, dtype);
        region.column_major = by_columns;
        files.s = made(s_file, 1, count, output);
        files.u = made(u_file, a.rows, count, output);
        files.vt = made(vt_file, count, a.columns, output);
        options.algorithm = svd::AlgorithmKind::randomized;
        options.components = count;
        options.verify = Verify::fast;
        std::vector<std::byte> bytes(index_of(region.bytes()));
        Numbers in_order;
        for (std::int64_t i = 0; i < region.stored_rows(); ++i) {
            for (std::int64_t j = 0; j < region.stored_columns(); ++j) {
                in_order.push_back(by_columns ? a(j, i) : a(i, j));
            }
        }
        kernel::convert(reinterpret_cast<const std::byte*>(in_order.data()), Dtype::float64, false, bytes.data(), dtype,
                        false, std::ssize(in_order));
        // What was rounded on the way into the file is what is decomposed.
        kernel::convert(bytes.data(), dtype, false, reinterpret_cast<std::byte*>(in_order.data()), Dtype::float64,
                        false, std::ssize(in_order));
        for (std::int64_t i = 0; i < region.stored_rows(); ++i) {
            for (std::int64_t j = 0; j < region.stored_columns(); ++j) {
                (by_columns ? a(j, i) : a(i, j)) = in_order[index_of(i * region.stored_columns() + j)];
            }
        }
        if (comm.rank() == 0) {
            std::ofstream(region.path, std::ios::binary)
                .write(reinterpret_cast<const char*>(bytes.data()), region.bytes());
            for (const io::Region* file : {&files.s, &*files.u, &*files.vt}) {
                std::ofstream(file->path, std::ios::binary) << std::string(index_of(file->bytes()), '?');
            }
        }
        comm.barrier();
    }

    static io::Region made(const Scratch& file, std::int64_t rows, std::int64_t columns, Dtype dtype) {
        io::Region r = test::region(file.path, rows, columns, 0);
        r.dtype = dtype;
        r.file_bytes = r.bytes();
        return r;
    }

    template <class F> auto with_context(F f) const {
        Ledger ledger;
        Context context{comm, ledger, threads};
        ledger.start(Phase::input);
        auto result = f(context);
        ledger.stop();
        comm.barrier();
        return result;
    }

    svd::Outcome run() const {
        return with_context([&](Context& context) { return svd::decompose(context, region, files, output, options); });
    }
    Verification proof(Verify how) const {
        return with_context([&](Context& context) {
            svd::Options asked = options;
            asked.verify = how;
            svd::Diagnostics diagnostics;
            return svd::verify(context, region, files, asked, diagnostics);
        });
    }

    FileMatrix contents(const io::Region& file) const {
        std::string bytes(index_of(file.bytes()), '\0');
        std::ifstream(file.path, std::ios::binary).read(bytes.data(), file.bytes());
        FileMatrix found{file.rows, file.columns, Numbers(index_of(file.rows * file.columns))};
        kernel::convert(reinterpret_cast<const std::byte*>(bytes.data()), file.dtype, false,
                        reinterpret_cast<std::byte*>(found.numbers.data()), Dtype::float64, false,
                        std::ssize(found.numbers));
        return found;
    }
    Factors result() const { return {contents(*files.u), contents(*files.vt), contents(files.s).numbers}; }

    /// Rank 0 changes a file behind everybody's back.
    template <class F> void change(const io::Region& file, F f) const {
        comm.barrier();
        if (comm.rank() == 0) {
            FileMatrix numbers = contents(file);
            f(numbers);
            std::vector<char> bytes(index_of(file.bytes()));
            kernel::convert(reinterpret_cast<const std::byte*>(numbers.numbers.data()), Dtype::float64, false,
                            reinterpret_cast<std::byte*>(bytes.data()), file.dtype, false, std::ssize(numbers.numbers));
            std::ofstream(file.path, std::ios::binary).write(bytes.data(), file.bytes());
        }
        comm.barrier();
    }
    double epsilon() const {
        return output == Dtype::float32 ? std::numeric_limits<float>::epsilon()
                                        : std::numeric_limits<double>::epsilon();
    }
};

inline double distance_to_identity(const FileMatrix& q, bool rows) {
    double most = 0;
    const std::int64_t count = rows ? q.rows : q.columns, length = rows ? q.columns : q.rows;
    for (std::int64_t i = 0; i < count; ++i) {
        for (std::int64_t j = 0; j < count; ++j) {
            double sum = i == j ? -1 : 0;
            for (std::int64_t k = 0; k < length; ++k) {
                sum += rows ? q(i, k) * q(j, k) : q(k, i) * q(k, j);
            }
            most = std::max(most, std::abs(sum));
        }
    }
    return most;
}

inline double relative_error(const FileMatrix& a, const Factors& d) {
    double error = 0, all = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
        for (std::int64_t j = 0; j < a.columns; ++j) {
            double gap = a(i, j);
            for (std::int64_t k = 0; k < std::ssize(d.s); ++k) {
                gap -= d.u(i, k) * d.s[index_of(k)] * d.vt(k, j);
            }
            error += gap * gap;
            all += a(i, j) * a(i, j);
        }
    }
    return std::sqrt(error / (all > 0 ? all : 1));
}

/// What no decomposition with so many components can do without.
inline double tail(const Numbers& s, std::int64_t count) {
    double rest = 0, all = 0;
    for (std::int64_t k = 0; k < std::ssize(s); ++k) {
        all += s[index_of(k)] * s[index_of(k)];
        rest += k < count ? 0 : s[index_of(k)] * s[index_of(k)];
    }
    return std::sqrt(rest / all);
}

inline void check_signs(const FileMatrix& u) {
    for (std::int64_t j = 0; j < u.columns; ++j) {
        double most = 0;
        for (std::int64_t i = 0; i < u.rows; ++i) {
            most = std::max(most, std::abs(u(i, j)));
        }
        for (std::int64_t i = 0; i < u.rows; ++i) {
            if (std::abs(u(i, j)) >= (1 - 1e-6) * most) {
                CHECK(u(i, j) >= 0);
                break;
            }
        }
    }
}

}  // namespace tilewise::test::svd_files
