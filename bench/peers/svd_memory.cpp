// Times singular value decompositions in memory, with vectors, float64: tilewise's Jacobi and its two stages on one
// rank without MPI, and LAPACK's gesdd and gejsv (a Jacobi too) of the same library; all sides in turns on the same
// matrix.
//
// svd_memory ROWS COLUMNS THREADS ROUNDS [KIND=normal SIDES=eigen,gesdd,gejsv]      ROWS ≥ COLUMNS
// KIND: normal; graded: normal · diag(10^(−20·permutation/n)); deficient: of half the rank; repeated: singular values 1
// and 0.001, each many times; geometric: from 1 to 10⁻⁸; zero.
// SIDES: eigen, qr (how tilewise's Jacobi starts), rotations (its reference), two_stage, gesdd, gejsv.
// Prints a line of JSON for each side: {"side": …, "seconds": [one a round], "median": …, "residual": ‖A−UΣVᵀ‖_F/‖A‖_F,
// "orthogonality_u": max|UᵀU−I|, "orthogonality_v": …, "sigma_error": the largest relative difference of a singular
// value from gejsv's}, and for tilewise the seconds of its stages.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "tilewise/base/random.hpp"
#include "tilewise/dist/column_qr.hpp"
#include "tilewise/kernel/factor/gesdd.hpp"
#include "tilewise/kernel/factor/lapack.hpp"
#include "tilewise/kernel/factor/two_stage.hpp"
#include "tilewise/svd/jacobi_ends.hpp"

namespace {

using namespace tilewise;
using namespace tilewise::kernel;

void fill_normal(const Columns& a, std::uint64_t first_row) {
    for (std::int64_t r = 0; r < a.rows; ++r) {
        const std::uint64_t key = row_key(7, first_row + static_cast<std::uint64_t>(r));
        for (std::int64_t c = 0; c < a.count; ++c) {
            a.column(c)[r] = normal(random_bits(key, static_cast<std::uint64_t>(c)));
        }
    }
}

/// C = factor·AᵀB (`transposed`) or factor·A·B, added to what is there if `add`.
void product(bool transposed, const Columns& a, bool b_transposed, const Columns& b, double factor, bool add,
             const Columns& c) {
    const int m = lapack_int(c.rows), n = lapack_int(c.count), k = lapack_int(transposed ? a.rows : a.count),
              lda = lapack_int(a.stride), ldb = lapack_int(b.stride), ldc = lapack_int(c.stride);
    const double beta = add ? 1 : 0;
    TILEWISE_BLAS(dgemm_)
    (transposed ? "T" : "N", b_transposed ? "T" : "N", &m, &n, &k, &factor, a.data, &lda, b.data, &ldb, &beta, c.data,
     &ldc);
}

/// Orthonormal columns, from the QR of a normal matrix.
Matrix orthonormal(std::int64_t rows, std::int64_t count, std::uint64_t first_row) {
    Matrix q(rows, count);
    fill_normal(q.columns(), first_row);
    const dist::ColumnComm alone;
    const dist::ColumnQr factored =
        dist::column_qr<double>({q.columns(), std::vector<int>(static_cast<std::size_t>(count), 0)}, alone, 1);
    Matrix columns(rows, count);
    for (std::int64_t c = 0; c < count; ++c) {
        columns.column(c)[c] = 1;
    }
    dist::apply_q(factored, columns.columns(), alone, 1);
    return columns;
}

Matrix matrix_of(const std::string& kind, std::int64_t rows, std::int64_t count) {
    Matrix a(rows, count);
    const auto scaled = [&](const Matrix& m, auto scale) {
        for (std::int64_t c = 0; c < m.count; ++c) {
            std::transform(m.column(c), m.column(c) + m.rows, m.column(c), [&](double x) { return x * scale(c); });
        }
    };
    const auto last = static_cast<double>(std::max<std::int64_t>(count - 1, 1));
    if (kind == "normal" || kind == "graded") {
        fill_normal(a.columns(), 0);
    }
    if (kind == "graded") {
        scaled(a, [&](std::int64_t c) {
            return std::pow(10.0, -20.0 * static_cast<double>(c * 7919 % count) / static_cast<double>(count));
        });
    } else if (kind == "deficient") {
        Matrix left(rows, count / 2), right(count, count / 2);
        fill_normal(left.columns(), 0);
        fill_normal(right.columns(), 1U << 24U);
        product(false, left.columns(), true, right.columns(), 1, false, a.columns());
    } else if (kind == "repeated" || kind == "geometric") {
        const Matrix u = orthonormal(rows, count, 0), v = orthonormal(count, count, 1U << 24U);
        scaled(u, [&](std::int64_t c) {
            return kind == "repeated" ? (c % 2 == 0 ? 1 : 1e-3) : std::pow(10.0, -8 * static_cast<double>(c) / last);
        });
        product(false, u.columns(), true, v.columns(), 1, false, a.columns());
    }
    return a;
}

Matrix copy_of(const Matrix& m) {
    Matrix copy(m.rows, m.count);
    std::copy_n(m.data(), m.stride * m.count, copy.data());
    return copy;
}

double orthogonality(const Columns& m) {
    Matrix g(m.count, m.count);
    product(true, m, false, m, 1, false, g.columns());
    double worst = 0;
    for (std::int64_t c = 0; c < m.count; ++c) {
        for (std::int64_t r = 0; r < m.count; ++r) {
            worst = std::max(worst, std::abs(g.column(c)[r] - (r == c ? 1 : 0)));
        }
    }
    return worst;
}

double norm(const Matrix& m) {
    double sum = 0;
    for (std::int64_t c = 0; c < m.count; ++c) {
        sum += std::inner_product(m.column(c), m.column(c) + m.rows, m.column(c), 0.0);
    }
    return std::sqrt(sum);
}

struct Result {
    Matrix u, v;
    bool v_transposed = false;  ///< v holds Vᵀ
    std::vector<double> sigma;
    svd::JacobiFacts facts{};
    TwoStageSvd::Seconds stages{};
};

/// Columns without gaps, which a matrix then owns.
void take(const Array<double>& from, Matrix& to) {
    for (std::int64_t c = 0; c < to.count; ++c) {
        std::copy_n(from.data() + c * to.rows, to.rows, to.column(c));
    }
}

/// Two stages take columns without gaps and give such: these copies are not timed.
double in_two_stages(const Matrix& a, Result& out, int threads) {
    Array<double> packed(a.rows * a.count);
    for (std::int64_t c = 0; c < a.count; ++c) {
        std::copy_n(a.column(c), a.rows, packed.data() + c * a.rows);
    }
    const auto begin = std::chrono::steady_clock::now();
    TwoStageSvd svd(std::move(packed), a.rows, a.count, true, threads);
    const Array<double> u = svd.left(a.count, false), v = svd.right(a.count, false);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    take(u, out.u);
    take(v, out.v);
    out.sigma = svd.sigma();
    out.stages = svd.seconds();
    return passed.count();
}

/// Decomposes `a`, which it may destroy; returns the seconds.
double decompose(const std::string& side, Matrix& a, Result& out, int threads) {
    const std::int64_t rows = a.rows, count = a.count;
    out = {Matrix(rows, count), Matrix(count, count), side == "gesdd",
           std::vector<double>(static_cast<std::size_t>(count))};
    if (side == "two_stage") {
        return in_two_stages(a, out, threads);
    }
    const auto begin = std::chrono::steady_clock::now();
    if (side == "gesdd") {
        out.u.stride = rows;
        out.v.stride = count;
        gesdd(rows, count, a.data(), a.stride, out.sigma.data(), out.u.data(), out.v.data(), threads);
    } else if (side == "gejsv") {
        const BlasThreads blas(threads);
        const int m = lapack_int(rows), n = lapack_int(count), lda = lapack_int(a.stride),
                  ldu = lapack_int(out.u.stride), ldv = lapack_int(out.v.stride),
                  reals = std::max({2 * m + n, 6 * n + 2 * n * n, 7}) + 64 * n;
        std::vector<double> work(static_cast<std::size_t>(reals));
        std::vector<int> integers(static_cast<std::size_t>(m + 3 * n));
        int info = 0;
        TILEWISE_BLAS(dgejsv_)
        ("C", "U", "V", "R", "N", "P", &m, &n, a.data(), &lda, out.sigma.data(), out.u.data(), &ldu, out.v.data(), &ldv,
         work.data(), &reals, integers.data(), &info);
        for (double& value : out.sigma) {
            value *= work[0] / work[1];
        }
    } else {
        svd::JacobiOptions options;
        options.threads = threads;
        options.eigen_start = side == "eigen";
        options.inner = side == "rotations" ? Inner::rotations : Inner::blocks;
        out.facts = svd::jacobi_svd(a.columns(), out.sigma.data(), out.u.columns(), out.v.columns(), options);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Side {
    std::string name;
    std::vector<double> seconds{};
    Result result{};
};

void print(Side& side, const Matrix& a, const std::vector<double>& expected) {
    std::cout << R"({"side": ")" << side.name << R"(", "seconds": [)";
    for (std::size_t k = 0; k < side.seconds.size(); ++k) {
        std::cout << (k > 0 ? ", " : "") << side.seconds[k];
    }
    std::sort(side.seconds.begin(), side.seconds.end());
    Result& r = side.result;
    double sigma_error = 0;
    for (std::size_t k = 0; k < expected.size(); ++k) {
        sigma_error = std::max(sigma_error, std::abs(r.sigma[k] - expected[k]) / std::max(expected[k], 1e-300));
    }
    const double u_error = orthogonality(r.u.columns()), v_error = orthogonality(r.v.columns()), size = norm(a);
    for (std::int64_t c = 0; c < a.count; ++c) {
        std::transform(r.u.column(c), r.u.column(c) + a.rows, r.u.column(c),
                       [&](double x) { return x * r.sigma[static_cast<std::size_t>(c)]; });
    }
    Matrix rest = copy_of(a);
    product(false, r.u.columns(), !r.v_transposed, r.v.columns(), -1, true, rest.columns());
    std::cout << R"(], "median": )" << side.seconds[side.seconds.size() / 2] << R"(, "residual": )"
              << norm(rest) / std::max(size, 1e-300) << R"(, "orthogonality_u": )" << u_error
              << R"(, "orthogonality_v": )" << v_error << R"(, "sigma_error": )" << sigma_error;
    if (const TwoStageSvd::Seconds& s = r.stages; s.back > 0) {
        std::cout << R"(, "band": )" << s.band << R"(, "chase": )" << s.chase << R"(, "divide": )" << s.divide
                  << R"(, "back": )" << s.back;
    }
    const svd::JacobiFacts& f = r.facts;
    if (!f.start.empty()) {
        std::cout << R"(, "start": ")" << f.start << R"(", "fallback": ")" << f.fallback << R"(", "converged": )"
                  << (f.converged ? "true" : "false") << R"(, "stages": [)" << f.start_seconds << ", "
                  << f.sweep_seconds << ", " << f.finish_seconds << R"(], "off": [)";
        for (std::size_t k = 0; k < f.off.size(); ++k) {
            std::cout << (k > 0 ? ", " : "") << f.off[k];
        }
        std::cout << R"(], "inner_solves": {"small_angles": )" << f.tally.small_angles << R"(, "eigen": )"
                  << f.tally.eigen << R"(, "cholesky": )" << f.tally.cholesky << R"(, "rotations": )"
                  << f.tally.rotations << R"(, "skipped": )" << f.tally.skipped << "}";
    }
    std::cout << "}" << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() < 4 || words.size() > 6) {
        std::cerr << "usage: svd_memory ROWS COLUMNS THREADS ROUNDS [KIND SIDES]\n";
        return 2;
    }
    const std::vector<std::string> rest{"normal", "eigen,gesdd,gejsv"};
    words.insert(words.end(), rest.begin() + static_cast<std::ptrdiff_t>(words.size()) - 4, rest.end());
    const Matrix a = matrix_of(words[4], std::stoll(words[0]), std::stoll(words[1]));
    const int threads = std::stoi(words[2]), rounds = std::stoi(words[3]);
    std::vector<Side> sides;
    for (std::size_t begin = 0; begin < words[5].size();) {
        const std::size_t end = std::min(words[5].find(',', begin), words[5].size());
        sides.push_back({words[5].substr(begin, end - begin)});
        begin = end + 1;
    }
    for (int round = 0; round < rounds; ++round) {
        for (std::size_t k = 0; k < sides.size(); ++k) {
            Side& side = sides[round % 2 == 0 ? k : sides.size() - 1 - k];
            Matrix copy = copy_of(a);
            side.seconds.push_back(decompose(side.name, copy, side.result, threads));
        }
    }
    const auto reference =
        std::find_if(sides.begin(), sides.end(), [](const Side& side) { return side.name == "gejsv"; });
    const std::vector<double> expected = reference != sides.end() ? reference->result.sigma : std::vector<double>{};
    for (Side& side : sides) {
        print(side, a, expected);
    }
    return 0;
}
