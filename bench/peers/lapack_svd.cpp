// Times LAPACK's decompositions of a matrix file, and finds its singular values to more digits than a double has.
//
// lapack_svd FILE.npy THREADS WARMUP RUNS SIDE…
// FILE: float64, C order, at least as many rows as columns. SIDE: gesdd; gejsv (LAPACK's preconditioned Jacobi);
// extended, quadruple: plain one-sided Jacobi in 64 or 113 bits, singular values alone, run once. Prints a line of JSON
// for each side: {"side", "seconds": [one a run], "sigma": [descending], "kernel"}; where there are vectors also
// {"residual": |A - U S V'| / |A| (Frobenius), "orthogonality": the largest number of |U'U - I| and |V'V - I|}.
#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tilewise/kernel/factor/lapack.hpp"

namespace {

__extension__ using Quadruple = __float128;

/// Column-major.
struct Matrix {
    int rows = 0, columns = 0;
    std::vector<double> data{};

    Matrix(int m, int n) : rows(m), columns(n), data(static_cast<std::size_t>(m) * static_cast<std::size_t>(n)) {}
    double& at(int i, int j) {
        return data[static_cast<std::size_t>(j) * static_cast<std::size_t>(rows) + static_cast<std::size_t>(i)];
    }
};

struct Answer {
    std::vector<double> seconds{}, sigma{};
    double residual = -1, orthogonality = -1;  ///< negative: no vectors
};

Matrix load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    char magic[8];
    std::uint8_t length[4] = {};
    if (!file.read(magic, 8) || !file.read(reinterpret_cast<char*>(length), magic[6] == 1 ? 2 : 4)) {
        throw std::runtime_error(path + " is no .npy file");
    }
    std::string header(length[0] + 256U * length[1] + 65536U * length[2], ' ');
    file.read(header.data(), static_cast<std::streamsize>(header.size()));
    const std::size_t shape = header.find("'shape': (");
    int rows = 0, columns = 0;
    if (header.find("'<f8'") == std::string::npos || header.find("'fortran_order': False") == std::string::npos ||
        shape == std::string::npos || std::sscanf(header.c_str() + shape, "'shape': (%d, %d", &rows, &columns) != 2 ||
        rows < columns) {
        throw std::runtime_error(path + " is no tall float64 matrix in C order: " + header);
    }
    Matrix a(rows, columns);
    std::vector<double> row(static_cast<std::size_t>(columns));
    for (int i = 0; i < rows; ++i) {
        if (!file.read(reinterpret_cast<char*>(row.data()), static_cast<std::streamsize>(8 * row.size()))) {
            throw std::runtime_error(path + " ends early");
        }
        for (int j = 0; j < columns; ++j) {
            a.at(i, j) = row[static_cast<std::size_t>(j)];
        }
    }
    return a;
}

double norm(const std::vector<double>& values) {
    return std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
}

/// C = alpha op(A) op(B) + beta C.
void gemm(char ta, char tb, double alpha, const Matrix& a, const Matrix& b, double beta, Matrix& c) {
    const int inner = ta == 'N' ? a.columns : a.rows;
    TILEWISE_BLAS(dgemm_)(&ta, &tb, &c.rows, &c.columns, &inner, &alpha, a.data.data(), &a.rows, b.data.data(), &b.rows,
                          &beta, c.data.data(), &c.rows);
}

double orthogonality(const Matrix& q) {
    Matrix gram(q.columns, q.columns);
    gemm('T', 'N', 1, q, q, 0, gram);
    double worst = 0;
    for (int j = 0; j < q.columns; ++j) {
        for (int i = 0; i < q.columns; ++i) {
            const double d = std::abs(gram.at(i, j) - (i == j ? 1 : 0));
            worst = d <= worst ? worst : d;  // NaN too
        }
    }
    return worst;
}

/// `v` holds V, or V' where `transposed`.
void prove(const Matrix& a, Matrix u, const Matrix& v, bool transposed, Answer& answer) {
    answer.orthogonality = std::max(orthogonality(u), orthogonality(v));
    for (int j = 0; j < u.columns; ++j) {
        for (int i = 0; i < u.rows; ++i) {
            u.at(i, j) *= answer.sigma[static_cast<std::size_t>(j)];
        }
    }
    Matrix rest = a;
    gemm('N', transposed ? 'N' : 'T', -1, u, v, 1, rest);
    answer.residual = norm(rest.data) / std::max(norm(a.data), 1e-300);
}

template <class Work> void timed(int warmup, int runs, Answer& answer, const Work& work) {
    for (int run = 0; run < warmup + runs; ++run) {
        const double seconds = work();
        if (run >= warmup) {
            answer.seconds.push_back(seconds);
        }
    }
}

double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void check(const char* name, int info) {
    if (info != 0) {
        throw std::runtime_error(std::string(name) + " ended with info = " + std::to_string(info));
    }
}

Answer gesdd(const Matrix& a, int warmup, int runs) {
    const int m = a.rows, n = a.columns;
    Answer answer;
    answer.sigma.resize(static_cast<std::size_t>(n));
    Matrix copy = a, u(m, n), vt(n, n);
    std::vector<int> integers(8 * static_cast<std::size_t>(n));
    int info = 0, lwork = -1;
    std::vector<double> work(1);
    const auto call = [&] {
        TILEWISE_BLAS(dgesdd_)("S", &m, &n, copy.data.data(), &m, answer.sigma.data(), u.data.data(), &m,
                               vt.data.data(), &n, work.data(), &lwork, integers.data(), &info);
        check("gesdd", info);
    };
    call();
    lwork = static_cast<int>(work[0]);
    work.resize(static_cast<std::size_t>(lwork));
    timed(warmup, runs, answer, [&] {
        copy = a;
        const auto begin = std::chrono::steady_clock::now();
        call();
        return since(begin);
    });
    prove(a, u, vt, true, answer);
    return answer;
}

Answer gejsv(const Matrix& a, int warmup, int runs) {
    const int m = a.rows, n = a.columns;
    Answer answer;
    answer.sigma.resize(static_cast<std::size_t>(n));
    Matrix copy = a, u(m, n), v(n, n);
    std::vector<int> integers(static_cast<std::size_t>(m) + 4 * static_cast<std::size_t>(n));
    // More than the least that it asks for, so that every part of it can work on blocks of 64 columns.
    const int lwork = 2 * m + 2 * n * n + 70 * (m + n);
    std::vector<double> work(static_cast<std::size_t>(lwork));
    timed(warmup, runs, answer, [&] {
        copy = a;
        int info = 0;
        const auto begin = std::chrono::steady_clock::now();
        // C: accurate for any scaling of the columns; R: singular values may underflow; nothing is perturbed.
        TILEWISE_BLAS(dgejsv_)("C", "U", "V", "R", "N", "N", &m, &n, copy.data.data(), &m, answer.sigma.data(),
                               u.data.data(), &m, v.data.data(), &n, work.data(), &lwork, integers.data(), &info);
        const double seconds = since(begin);
        check("gejsv", info);
        return seconds;
    });
    for (double& sigma : answer.sigma) {
        sigma *= work[0] / work[1];
    }
    prove(a, u, v, false, answer);
    return answer;
}

template <class T> T root(T value) {
    if (value <= 0) {
        return 0;
    }
    const T guess = std::sqrt(static_cast<long double>(value));
    return (guess + value / guess) / 2;  // one step of Newton's doubles the digits that long double has
}

template <class T> T dot(const std::vector<T>& x, const std::vector<T>& y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), T(0));
}

/// Makes two columns orthogonal, the longer one first; returns whether they were not.
template <class T> bool rotate(std::vector<T>& x, std::vector<T>& y, T tolerance) {
    const T a = dot(x, x), b = dot(y, y), c = dot(x, y), magnitude = c < 0 ? -c : c;
    const bool turned = magnitude > tolerance * root(a) * root(b);
    if (turned) {
        const T zeta = (b - a) / (2 * c), size = zeta < 0 ? -zeta : zeta;
        const T tangent = (zeta < 0 ? T(-1) : T(1)) / (size + root(1 + zeta * zeta));
        const T cosine = 1 / root(1 + tangent * tangent), sine = cosine * tangent;
        for (std::size_t i = 0; i < x.size(); ++i) {
            const T left = x[i];
            x[i] = cosine * left - sine * y[i];
            y[i] = sine * left + cosine * y[i];
        }
    }
    if (a < b) {
        std::swap(x, y);
    }
    return turned;
}

/// One-sided Jacobi, rotation by rotation, pairs in round robin so that all pairs of a step are independent.
template <class T> Answer reference(Matrix a, int threads, T epsilon) {
    std::vector<std::vector<T>> columns;
    for (int j = 0; j < a.columns; ++j) {
        columns.emplace_back(&a.at(0, j), &a.at(0, j) + a.rows);
    }
    std::sort(columns.begin(), columns.end(), [](const auto& x, const auto& y) { return dot(x, x) > dot(y, y); });
    const int n = a.columns + a.columns % 2, half = n / 2;  // an odd column rests
    const T tolerance = epsilon * root(static_cast<T>(a.rows));
    std::atomic<std::int64_t> turned = 0;
    bool done = false;
    int sweeps = 0;
    std::barrier together(threads);
    const auto begin = std::chrono::steady_clock::now();
    const auto work = [&](int thread) {
        while (!done) {
            for (int step = 0; step < n - 1; ++step) {
                for (int k = thread; k < half; k += threads) {
                    const auto seat = [&](int place) { return place == 0 ? 0 : 1 + (place - 1 + step) % (n - 1); };
                    const auto [first, second] = std::minmax({seat(k), seat(n - 1 - k)});
                    if (second < a.columns) {
                        turned += rotate(columns[static_cast<std::size_t>(first)],
                                         columns[static_cast<std::size_t>(second)], tolerance);
                    }
                }
                together.arrive_and_wait();
            }
            if (thread == 0) {
                done = turned.exchange(0) == 0 || ++sweeps == 60;
            }
            together.arrive_and_wait();
        }
    };
    std::vector<std::thread> team;
    for (int thread = 1; thread < threads; ++thread) {
        team.emplace_back(work, thread);
    }
    work(0);
    for (std::thread& member : team) {
        member.join();
    }
    if (sweeps == 60) {
        throw std::runtime_error("the reference did not converge in 60 sweeps");
    }
    Answer answer;
    answer.seconds.push_back(since(begin));
    for (const auto& column : columns) {
        answer.sigma.push_back(static_cast<double>(root(dot(column, column))));
    }
    std::sort(answer.sigma.rbegin(), answer.sigma.rend());
    return answer;
}

Answer run(const std::string& side, const Matrix& a, int threads, int warmup, int runs) {
    if (side == "gesdd") {
        return gesdd(a, warmup, runs);
    }
    if (side == "gejsv") {
        return gejsv(a, warmup, runs);
    }
    if (side == "extended") {
        return reference<long double>(a, threads, 0x1p-63L);
    }
    if (side == "quadruple") {
        return reference<Quadruple>(a, threads, static_cast<Quadruple>(0x1p-112L));
    }
    throw std::runtime_error("unknown side " + side);
}

void print(const char* name, const std::vector<double>& values) {
    std::printf("\"%s\": [", name);
    for (std::size_t k = 0; k < values.size(); ++k) {
        std::printf("%s%.17g", k > 0 ? ", " : "", values[k]);
    }
    std::printf("], ");
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 6) {
        std::cerr << "usage: lapack_svd FILE.npy THREADS WARMUP RUNS SIDE...\n";
        return 2;
    }
    const Matrix a = load(argv[1]);
    const int threads = std::atoi(argv[2]), warmup = std::atoi(argv[3]), runs = std::atoi(argv[4]);
    if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr) {
        TILEWISE_BLAS(openblas_set_num_threads)(threads);
    }
    const char* kernel = TILEWISE_BLAS(openblas_get_corename) == nullptr ? "" : TILEWISE_BLAS(openblas_get_corename)();
    for (int k = 5; k < argc; ++k) {
        const Answer answer = run(argv[k], a, threads, warmup, runs);
        std::printf("{\"side\": \"%s\", ", argv[k]);
        print("seconds", answer.seconds);
        print("sigma", answer.sigma);
        if (answer.residual >= 0) {
            std::printf("\"residual\": %.3g, \"orthogonality\": %.3g, ", answer.residual, answer.orthogonality);
        }
        std::printf("\"kernel\": \"%s\"}\n", kernel);
    }
    return 0;
} catch (const std::exception& error) {
    std::cerr << "lapack_svd: " << error.what() << '\n';
    return 1;
}
