// What a call of the library must not change in the program that calls it, whether it succeeds or throws; and what
// it says of wrong views.
#include <array>
#include <cfenv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library_cases.hpp"
#include "tilewise/io/strategy/mapped.hpp"
#include "tilewise/kernel/factor/lapack.hpp"

using namespace tilewise;
using namespace tilewise::test;

namespace {

void own_handler(int) {}

/// All of a process that a library could disturb, as text.
std::string host() {
    std::string all;
    const auto bytes_of = [&](const auto& value) { all.append(reinterpret_cast<const char*>(&value), sizeof value); };
    for (int number = 1; number < 32; ++number) {
        struct sigaction action{};
        if (sigaction(number, nullptr, &action) == 0) {
            bytes_of(action.sa_handler);
            bytes_of(action.sa_flags);
        }
    }
    sigset_t blocked{};
    sigprocmask(SIG_BLOCK, nullptr, &blocked);
    for (int number = 1; number < 32; ++number) {
        all += sigismember(&blocked, number) == 1 ? '1' : '0';
    }
    cpu_set_t cores{};
    sched_getaffinity(0, sizeof cores, &cores);
    bytes_of(cores);
    const mode_t mask = umask(0);
    umask(mask);
    bytes_of(mask);
    for (const auto limit : {RLIMIT_CORE, RLIMIT_DATA, RLIMIT_NOFILE, RLIMIT_STACK, RLIMIT_MEMLOCK}) {
        struct rlimit found{};
        getrlimit(limit, &found);
        bytes_of(found);
    }
    for (char** variable = environ; *variable != nullptr; ++variable) {
        all += *variable;
    }
    all += std::filesystem::current_path().string() + std::to_string(fegetround());
    if (TILEWISE_BLAS(openblas_get_num_threads) != nullptr) {
        all += std::to_string(TILEWISE_BLAS(openblas_get_num_threads)());
    }
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    all += handler == MPI_ERRORS_ARE_FATAL ? "fatal" : "other";
    MPI_Errhandler_free(&handler);
    MPI_File_get_errhandler(MPI_FILE_NULL, &handler);
    all += handler == MPI_ERRORS_RETURN ? "return" : "other";
    MPI_Errhandler_free(&handler);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(entry.path(), gone).string();
        all += target.starts_with("/proc/") ? "" : target + "\n";
    }
    return all;
}

template <class F> std::string refused(F f) {
    try {
        f();
    } catch (const Error& error) {
        CHECK(error.kind() == ErrorKind::usage);
        return error.what();
    }
    return "nothing was thrown";
}

bool has(const std::string& text, const std::string& word) { return text.find(word) != std::string::npos; }

}  // namespace

TEST_CASE("calls leave the process as they found it, also when they throw") {
    const MPI_Comm comm = MPI_COMM_WORLD;
    Random random(1);
    Local<double> a(random, 70, 50, comm), b(random, 50, 70, comm), c(random, 70, 70, comm), u(random, 70, 50, comm),
        vt(random, 50, 50, comm);
    a.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(number_at(i, j, 1)) + (i == j ? 9 : 0); });
    b.fill([](std::int64_t i, std::int64_t j) { return static_cast<double>(number_at(i, j, 2)); });
    const std::string path = "/tmp/tilewise-test-host-" + std::to_string(size_of_comm(comm)) + ".npy";
    const auto all_that_works = [&] {
        multiply(comm, a.view(), b.view(), c.view(), {.threads = 2, .verify = true});
        transpose(comm, a.view(), b.view(), {.threads = 2});
        StencilOptions options;
        options.weights = std::vector<double>(9, 0.1);
        options.threads = 2;
        stencil(comm, c.view(), c.view(), options);
        svd(comm, a.view(), u.view(), vt.view(), {.threads = 2});
        const MutableMatrix file = create(comm, path, 70, 70, Dtype::float64, {.replace = true});
        multiply(comm, a.view(), b.view(), file);
        transpose(comm, open(comm, path), c.view());
        io::Region mapped;
        mapped.path = mapped.name = path;
        mapped.rows = mapped.columns = 70;
        const io::Mapping mapping(mapped, io::Direction::read);
    };
    all_that_works();  // what MPI and the BLAS open once and keep is theirs
    if (TILEWISE_BLAS(openblas_set_num_threads) != nullptr) {
        TILEWISE_BLAS(openblas_set_num_threads)(2);
    }
    struct sigaction before{};
    sigaction(SIGBUS, nullptr, &before);
    std::signal(SIGBUS, own_handler);
    const std::string found = host();
    all_that_works();
    CHECK(host() == found);

    CHECK_THROWS_AS(multiply(comm, a.view(), a.view(), c.view()), Error);
    CHECK_THROWS_AS(transpose(comm, a.view(), a.view()), Error);
    CHECK_THROWS_AS(stencil(comm, a.view(), b.view(), {}), Error);
    CHECK_THROWS_AS(svd(comm, a.view(), vt.view(), u.view()), Error);
    CHECK_THROWS_AS(open(comm, "/nowhere/a.npy"), Error);
    a.fill([](std::int64_t i, std::int64_t) { return i == 7 ? std::nan("") : 1.0; });
    CHECK_THROWS_AS(svd(comm, a.view(), u.view(), vt.view(), {.threads = 2}), Error);
    CHECK(host() == found);
    sigaction(SIGBUS, &before, nullptr);
    MPI_Barrier(comm);
    if (rank_of(comm) == 0) {
        std::filesystem::remove(path);
    }
}

TEST_CASE("communicators are freed, also where calls throw: there are some two thousand of them") {
    const MPI_Comm comm = MPI_COMM_WORLD;
    if (size_of_comm(comm) > 1) {
        return;
    }
    double number = 1;
    const Distribution one = Distribution::on_rank(1, 1, size_of_comm(comm), 0),
                       two = Distribution::on_rank(1, 0, size_of_comm(comm), 0);
    for (int call = 0; call < 2200; ++call) {
        CHECK_THROWS_AS(transpose(comm, view(one, &number), view(two, &number)), Error);
    }
}

TEST_CASE("what is wrong with a view is said on every rank, though one rank alone may be wrong") {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int ranks = size_of_comm(comm), rank = rank_of(comm);
    std::vector<double> memory(100, 1.0), result(100);
    const Distribution square = Distribution::by_rows(8, 8, ranks);
    const bool odd = rank == ranks - 1;
    const auto good = view(square, result.data());
    CHECK(has(refused([&] { transpose(comm, view(square, odd ? nullptr : memory.data()), good); }), "no memory"));
    CHECK(has(refused([&] { transpose(comm, view(square, memory.data(), Order::row_major, odd ? 7 : 8), good); }),
              "leading dimension of a view is 7"));
    CHECK(has(refused([&] {
                  transpose(comm,
                            view(square, Dtype::float64, std::vector<Piece<const void>>(odd ? 2 : 1, {memory.data()})),
                            good);
              }),
              "a view of 2 pieces"));
    CHECK(has(refused([&] { transpose(comm, view(Distribution::by_rows(8, 8, ranks + 1), memory.data()), good); }),
              "distributed over " + std::to_string(ranks + 1)));
    if (ranks > 1) {
        const Distribution other = odd ? Distribution::by_columns(8, 8, ranks) : square;
        CHECK(has(refused([&] { transpose(comm, view(other, memory.data()), good); }), "different matrices"));
    }
    CHECK(has(refused([&] {
                  multiply(comm, view(square, memory.data()), view(square, memory.data()),
                           view(square, reinterpret_cast<float*>(result.data())));
              }),
              "float32 cannot hold"));
    CHECK(has(refused([&] {
                  multiply(comm, view(square, memory.data()), view(square, memory.data()), good,
                           {.algorithm = MultiplyAlgorithm::cannon, .grid = {1, ranks + 1}});
              }),
              "cannon"));
}

TEST_CASE("distributions that are none are refused") {
    const auto blocks = [](std::vector<OwnedBlock> all) {
        return refused([&] { Distribution::of_blocks(4, 4, 2, std::move(all)); });
    };
    CHECK(has(blocks({{0, 0, 4, 0, 4}, {1, 3, 4, 3, 4}}), "overlap in row 3"));
    CHECK(has(blocks({{0, 0, 4, 0, 3}}), "hold 12 numbers"));
    CHECK(has(blocks({{0, 0, 4, 0, 5}}), "is outside the matrix"));
    CHECK(has(blocks({{2, 0, 4, 0, 4}}), "blocks on existing ranks"));
    CHECK(has(refused([] { Distribution::by_rows(-1, 4, 2); }), "not negative"));
    CHECK(has(refused([] { Distribution::block_cyclic(4, 4, {.grid = {2, 2}, .row_block = 0}); }),
              "of at least one number"));
    CHECK(has(refused([] { Distribution::block_cyclic(4, 4, {.grid = {2, 2}, .row_source = 2}); }), "on its grid"));
}
