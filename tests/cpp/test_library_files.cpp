// Files that the library opens and makes: headers of every kind, byte orders, tiles, and names that come when all is
// written.
#include <filesystem>
#include <fstream>
#include <sstream>

#include "library_cases.hpp"

using namespace tilewise;
using namespace tilewise::test;
namespace fs = std::filesystem;

namespace {

/// A folder that rank 0 makes and removes.
struct Folder {
    std::string path = "/tmp/tilewise-test-library-" + std::to_string(size_of_comm(MPI_COMM_WORLD));

    Folder() {
        if (rank_of(MPI_COMM_WORLD) == 0) {
            fs::remove_all(path);
            fs::create_directory(path);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder() {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank_of(MPI_COMM_WORLD) == 0) {
            fs::remove_all(path);
        }
    }
    std::string write(const std::string& name, const std::string& bytes) const {
        if (rank_of(MPI_COMM_WORLD) == 0) {
            fs::create_directories(fs::path(path + "/" + name).parent_path());
            std::ofstream(path + "/" + name, std::ios::binary) << bytes;
        }
        MPI_Barrier(MPI_COMM_WORLD);
        return path + "/" + name;
    }
};

/// As numpy writes it, version `version`, in so many bytes of header at least.
std::string npy(int version, const std::string& dictionary, const std::string& numbers) {
    const std::size_t lead = version == 1 ? 10 : 12, total = (lead + dictionary.size() + 1 + 63) / 64 * 64;
    const std::size_t length = total - lead;
    std::string bytes = "\x93NUMPY";
    bytes += static_cast<char>(version);
    bytes += '\0';
    for (std::size_t byte = 0; byte < lead - 8; ++byte) {
        bytes += static_cast<char>(length >> (8 * byte) & 255);
    }
    return bytes + dictionary + std::string(length - dictionary.size() - 1, ' ') + "\n" + numbers;
}

template <class T> std::string bytes_of(const std::vector<T>& numbers, bool swapped = false) {
    std::string all;
    for (const T& number : numbers) {
        std::string one(reinterpret_cast<const char*>(&number), sizeof number);
        all += swapped ? std::string(one.rbegin(), one.rend()) : one;
    }
    return all;
}

/// All numbers of a matrix of doubles, row by row, on every rank.
std::vector<double> numbers_of(const Matrix& matrix) {
    Random random(1);
    Local<double> local(random, matrix.rows(), matrix.columns(), MPI_COMM_WORLD);
    transpose(MPI_COMM_WORLD, transposed(matrix), local.view());
    return local.whole(MPI_COMM_WORLD);
}

std::string refused(const std::string& path) {
    try {
        open(MPI_COMM_WORLD, path);
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

const std::vector<double> six{1, 2, 3, 4, 5, 6};

}  // namespace

TEST_CASE("headers of .npy files: versions, orders of storage and bytes, keys in any sequence, one dimension") {
    const Folder folder;
    const std::vector<double> by_columns{1, 4, 2, 5, 3, 6};
    const auto read = [&](const std::string& bytes) {
        return numbers_of(open(MPI_COMM_WORLD, folder.write("a.npy", bytes)));
    };
    for (const int version : {1, 2, 3}) {
        CHECK(read(npy(version, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", bytes_of(six))) == six);
    }
    CHECK(read(npy(1, "{'descr': '>f8', 'fortran_order': False, 'shape': (2, 3)}", bytes_of(six, true))) == six);
    CHECK(read(npy(1, "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", bytes_of(by_columns))) == six);
    CHECK(read(npy(1, "{\"shape\":(2L,3L,),\"fortran_order\":False,\"descr\":\"<f8\"}", bytes_of(six))) == six);
    const Matrix column = open(MPI_COMM_WORLD, folder.write("b.npy", npy(1,
                                                                         "{'descr': '|u1', 'fortran_order': False, "
                                                                         "'shape': (6,), }",
                                                                         std::string(6, '\x05'))));
    CHECK(column.rows() == 6);
    CHECK(column.columns() == 1);
    CHECK(column.dtype() == Dtype::uint8);
    CHECK(transposed(column).columns() == 6);
}

TEST_CASE("files that are not what they should be are refused on every rank") {
    const Folder folder;
    const auto refuses = [&](const std::string& bytes, const std::string& why) {
        const std::string said = refused(folder.write("a.npy", bytes));
        CAPTURE(said);
        CHECK(said.find(why) != std::string::npos);
    };
    refuses("", "does not begin");
    refuses("PK\x03\x04 something else", "does not begin");
    refuses(npy(4, "{}", ""), "version 4.0");
    refuses(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", ""), "promises 176");
    refuses(npy(1, "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3), }", ""), "numbers were expected");
    refuses(npy(1, "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (2,)}", ""), "header");
    refuses(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3, 4)}", ""), "3 dimensions");
    refuses(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 9)}", ""), "no array");
    refuses(npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 3)}", ""), "a whole number was expected");
    refuses(npy(1, "{'descr': '<f8', 'fortran_order': Maybe, 'shape': (2, 3)}", ""), "neither True nor False");
    refuses(npy(1, "{'descr': '<f8', 'shape': (2, 3)}", bytes_of(six)), "a key is missing");
    refuses(npy(1, "{'descr': '<f8", ""), "does not end");
    CHECK(refused(folder.path).find("only .npy files") != std::string::npos);
    CHECK(refused(folder.path + "/none.npy").find("No such file") != std::string::npos);
}

TEST_CASE("raw files and folders of tiles") {
    const Folder folder;
    const std::string raw = folder.write("a.raw", "12345" + bytes_of(six, true));
    CHECK(numbers_of(open(MPI_COMM_WORLD, raw, {.rows = 2, .columns = 3, .offset = 5, .big_endian = true})) == six);
    CHECK_THROWS_AS(open(MPI_COMM_WORLD, raw, {.rows = 3, .columns = 3}), Error);

    const auto tile = [&](const std::string& name, const std::string& shape, const std::vector<double>& numbers) {
        folder.write("a.tiles/" + name,
                     npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + ", }", bytes_of(numbers)));
    };
    const auto manifest = [&](const std::string& second) {
        folder.write("a.tiles/manifest.json", R"({"tilewise": 1, "shape": [2, 3], "dtype": "float64", "tiles": [)"
                                              R"({"file": "l.npy", "rows": [0, 2], "columns": [0, 1]}, )" +
                                                  second + "]}");
    };
    tile("l.npy", "(2, 1)", {1, 4});
    tile("r.npy", "(2, 2)", {2, 3, 5, 6});
    manifest(R"({"file": "r.npy", "rows": [0, 2], "columns": [1, 3]})");
    const std::string path = folder.path + "/a.tiles";
    CHECK(numbers_of(open(MPI_COMM_WORLD, path)) == six);
    const auto refuses = [&](const std::string& second, const std::string& why) {
        manifest(second);
        CHECK(refused(path).find(why) != std::string::npos);
    };
    refuses(R"({"file": "r.npy", "rows": [0, 2], "columns": [0, 2]})", "overlap");
    refuses(R"({"file": "r.npy", "rows": [0, 1], "columns": [1, 3]})", "not the tile");
    refuses(R"({"file": "../r.npy", "rows": [0, 2], "columns": [1, 3]})", "outside its own folder");
    refuses(R"({"file": 7})", "is not a manifest");
    refuses(R"({"file": "r.npy", "rows": [0], "columns": [1, 3]})", "two numbers");
    refuses("", "numbers, but 2x3 are 6");
    refuses("[", "is not a manifest");
}

TEST_CASE("a new file has its name when the operation has succeeded, and is gone when nobody wrote it") {
    const Folder folder;
    const MPI_Comm comm = MPI_COMM_WORLD;
    const Matrix a = open(
        comm,
        folder.write("a.npy", npy(1, "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }", bytes_of(six))));
    const std::string path = folder.path + "/b.npy";
    for (const Order order : {Order::row_major, Order::column_major}) {
        const MutableMatrix b = create(comm, path, 3, 2, Dtype::float64, {.order = order, .replace = true});
        CHECK_THROWS_AS(transpose(comm, transposed(a), b), Error);
        CHECK(fs::exists(path) == (order == Order::column_major));
        MPI_Barrier(comm);
        transpose(comm, a, b);
        CHECK(numbers_of(transposed(open(comm, path))) == six);
        CHECK(numbers_of(transposed(b)) == six);
    }
    CHECK_THROWS_AS(create(comm, path, 3, 2, Dtype::float64), Error);
    {
        const MutableMatrix unused = create(comm, folder.path + "/c.npy", 2000, 300, Dtype::float64);
    }
    MPI_Barrier(comm);
    CHECK_FALSE(fs::exists(folder.path + "/c.npy.part"));
    const MutableMatrix large = create(comm, folder.path + "/d.raw", 2000, 300, Dtype::float64);
    const Matrix made = generated(300, 2000, Dtype::float64, Generator::ramp);
    transpose(comm, made, large, {.verify = true});
    CHECK(fs::file_size(folder.path + "/d.raw") == 2000 * 300 * 8);
    CHECK(numbers_of(transposed(large)) == numbers_of(made));
}
