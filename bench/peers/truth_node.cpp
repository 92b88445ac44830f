// Rates of this node by the plainest loops: memory, multiplications and additions, a file in the page cache.
//
//     truth_node memory THREADS[,…] BYTES…     "read 16384 1 1.7e+11": operation, bytes of an array, threads, bytes/s
//     truth_node arithmetic THREADS[,…]        "float64 0 1 6.4e+10": type, threads, operations/s
//     truth_node file PATH BYTES BLOCK         "write 1048576 1 3.1e+09": bytes of a call, bytes/s
//
// Nothing of tilewise is in it. The compiler's options choose the instruction set, and the best of a loop that it made
// vectors of, the C library's call and stores past the caches counts, as a median of five samples.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <immintrin.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int samples = 5;
constexpr double seconds_of_a_sample = 0.01;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
}

/// Seconds of one `work(thread)` of all threads together, begun at once: the median of some samples of many each.
double seconds_of(int threads, const std::function<void(int)>& work) {
    work(0);
    const auto begin = Clock::now();
    work(0);
    const int times = std::max(1, static_cast<int>(seconds_of_a_sample / std::max(seconds_since(begin), 1e-9)));
    std::vector<double> all;
    for (int sample = 0; sample < samples; ++sample) {
        std::atomic<int> ready = 0;
        std::vector<double> took(static_cast<std::size_t>(threads));
        std::vector<std::thread> helpers;
        for (int thread = 0; thread < threads; ++thread) {
            helpers.emplace_back([&, thread] {
                work(thread);
                ++ready;
                while (ready < threads) {
                }
                const auto start = Clock::now();
                for (int i = 0; i < times; ++i) {
                    work(thread);
                }
                took[static_cast<std::size_t>(thread)] = seconds_since(start) / times;
            });
        }
        for (std::thread& helper : helpers) {
            helper.join();
        }
        all.push_back(*std::max_element(took.begin(), took.end()));
    }
    return median(all);
}

#if defined(__AVX512F__)
using Vector = __m512d;
Vector load(const double* at) { return _mm512_load_pd(at); }
void stream(double* at, Vector value) { _mm512_stream_pd(at, value); }
Vector triad(Vector a, Vector b) { return _mm512_fmadd_pd(_mm512_set1_pd(3.0), b, a); }
#elif defined(__AVX2__)
using Vector = __m256d;
Vector load(const double* at) { return _mm256_load_pd(at); }
void stream(double* at, Vector value) { _mm256_stream_pd(at, value); }
Vector triad(Vector a, Vector b) { return _mm256_fmadd_pd(_mm256_set1_pd(3.0), b, a); }
#else
using Vector = __m128d;
Vector load(const double* at) { return _mm_load_pd(at); }
void stream(double* at, Vector value) { _mm_stream_pd(at, value); }
Vector triad(Vector a, Vector b) { return _mm_add_pd(a, _mm_mul_pd(_mm_set1_pd(3.0), b)); }
#endif
constexpr std::int64_t lanes = sizeof(Vector) / sizeof(double);

struct Part {
    double *to, *a, *b;
    std::int64_t count;
};

volatile std::uint64_t kept;

[[gnu::noinline]] void read_loop(const Part& p) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(p.a);
    std::uint64_t sum = 0;
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < p.count; ++i) {
        sum += words[i];
    }
    kept = sum;
}
[[gnu::noinline]] void write_loop(const Part& p) {
    for (std::int64_t i = 0; i < p.count; ++i) {
        p.to[i] = 1.5;
    }
}
[[gnu::noinline]] void copy_loop(const Part& p) {
    double* __restrict to = p.to;
    const double* __restrict a = p.a;
    for (std::int64_t i = 0; i < p.count; ++i) {
        to[i] = a[i];
    }
}
[[gnu::noinline]] void triad_loop(const Part& p) {
    double* __restrict to = p.to;
    const double* __restrict a = p.a, * __restrict b = p.b;
    for (std::int64_t i = 0; i < p.count; ++i) {
        to[i] = a[i] + 3.0 * b[i];
    }
}
void write_streamed(const Part& p) {
    alignas(sizeof(Vector)) double values[lanes];
    std::fill_n(values, lanes, 1.5);
    const Vector value = load(values);
    for (std::int64_t i = 0; i + lanes <= p.count; i += lanes) {
        stream(p.to + i, value);
    }
    _mm_sfence();
}
void copy_streamed(const Part& p) {
    for (std::int64_t i = 0; i + lanes <= p.count; i += lanes) {
        stream(p.to + i, load(p.a + i));
    }
    _mm_sfence();
}
void triad_streamed(const Part& p) {
    for (std::int64_t i = 0; i + lanes <= p.count; i += lanes) {
        stream(p.to + i, triad(load(p.a + i), load(p.b + i)));
    }
    _mm_sfence();
}
void copy_library(const Part& p) { std::memcpy(p.to, p.a, static_cast<std::size_t>(p.count) * sizeof(double)); }
void write_library(const Part& p) { std::memset(p.to, 1, static_cast<std::size_t>(p.count) * sizeof(double)); }

struct Operation {
    const char* name;
    int arrays;
    std::vector<void (*)(const Part&)> ways;
};

/// Each thread has its part of every array, at whole lines, and touches it first.
void memory(int threads, std::int64_t bytes) {
    const Operation operations[] = {{"read", 1, {read_loop}},
                                    {"write", 1, {write_loop, write_library, write_streamed}},
                                    {"copy", 2, {copy_loop, copy_library, copy_streamed}},
                                    {"triad", 3, {triad_loop, triad_streamed}}};
    const std::int64_t huge = 2 << 20, apart = (bytes + 4095) / 4096 * 4096 + 17 * 64;
    const std::int64_t whole = std::max<std::int64_t>((3 * apart + huge - 1) / huge * huge, 2 * huge);
    auto* data =
        static_cast<double*>(std::aligned_alloc(static_cast<std::size_t>(huge), static_cast<std::size_t>(whole)));
    std::memset(data, 0, static_cast<std::size_t>(whole));
    const std::int64_t count = bytes / 8 / threads / 8 * 8;
    for (const Operation& operation : operations) {
        double best = 1e300;
        for (const auto way : operation.ways) {
            best = std::min(best, seconds_of(threads, [&](int thread) {
                                const std::int64_t first = thread * count;
                                way({data + first, data + apart / 8 + first, data + 2 * apart / 8 + first, count});
                            }));
        }
        // Reading has one array, which here is the second one.
        std::printf("%s %ld %d %.4g\n", operation.name, static_cast<long>(bytes), threads,
                    static_cast<double>(count * 8 * threads) * operation.arrays / best);
    }
    std::free(data);
}

template <class Number> [[gnu::noinline]] void multiply_and_add(int turns) {
    typedef Number Numbers __attribute__((vector_size(sizeof(Vector))));
    Numbers s[12];
    const Numbers b = Numbers{} + Number(0.5), c = Numbers{} + Number(1);
    for (int i = 0; i < 12; ++i) {
        s[i] = Numbers{} + Number(i);
    }
    for (int turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 12
        for (int i = 0; i < 12; ++i) {
            s[i] = s[i] * b + c;
        }
    }
    Numbers sum = s[0];
    for (int i = 1; i < 12; ++i) {
        sum += s[i];
    }
    kept = static_cast<std::uint64_t>(sum[0]);
}

template <class Number> void arithmetic(const char* name, int threads) {
    constexpr int turns = 20000;
    const double seconds = seconds_of(threads, [](int) { multiply_and_add<Number>(turns); });
    const double operations = 2.0 * 12 * turns * static_cast<double>(sizeof(Vector) / sizeof(Number)) * threads;
    std::printf("%s 0 %d %.4g\n", name, threads, operations / seconds);
}

void file(const char* path, std::int64_t bytes, std::int64_t block) {
    std::vector<char> data(static_cast<std::size_t>(block), 'x');
    const int descriptor = open(path, O_RDWR | O_CREAT, 0600);
    const auto all = [&](auto call) {
        for (std::int64_t at = 0; at < bytes; at += block) {
            if (call(descriptor, data.data(), data.size(), at) != block) {
                std::exit(1);
            }
        }
    };
    std::printf("write %ld 1 %.4g\n", static_cast<long>(block),
                static_cast<double>(bytes) / seconds_of(1, [&](int) { all(pwrite); }));
    std::printf("read %ld 1 %.4g\n", static_cast<long>(block),
                static_cast<double>(bytes) / seconds_of(1, [&](int) { all(pread); }));
    close(descriptor);
}

}  // namespace

int main(int count, char** words) {
    const std::string what = count > 2 ? words[1] : "";
    if (what == "file" && count == 5) {
        file(words[2], std::atoll(words[3]), std::atoll(words[4]));
        return 0;
    }
    for (const char* at = count > 2 ? words[2] : ""; *at != '\0';
         at += std::strcspn(at, ",") + (at[std::strcspn(at, ",")] == ',')) {
        const int threads = std::atoi(at);
        if (what == "arithmetic") {
            arithmetic<double>("float64", threads);
            arithmetic<float>("float32", threads);
        }
        for (int i = 3; what == "memory" && i < count; ++i) {
            memory(threads, std::atoll(words[i]));
        }
    }
    return what == "memory" || what == "arithmetic" ? 0 : 2;
}
