// Rank 0 looks at files and makes them; what it found goes to all ranks as one message.
#include "tilewise/library/files.hpp"

#include <bit>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tilewise/base/random.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/library/headers.hpp"
#include "tilewise/library/matrix_state.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::inline api {
namespace {

bool ends_with_npy(const std::string& path) { return path.ends_with(".npy"); }

/// A region of files as text, in the sequence in which it is read again.
class PackedMessage {
public:
    void put(std::int64_t number) { text_ += std::to_string(number) + ' '; }
    void put(const std::string& word) {
        put(std::ssize(word));
        text_ += word;
    }
    std::int64_t number() {
        std::size_t end = 0;
        const std::int64_t found = std::stoll(text_.substr(at_, 24), &end);
        at_ += end + 1;
        return found;
    }
    std::string word() {
        const auto length = static_cast<std::size_t>(number());
        at_ += length;
        return text_.substr(at_ - length, length);
    }
    /// Rank 0's text becomes everybody's. @note Collective.
    void share(const mpi::Communicator& comm) {
        auto length = static_cast<std::int64_t>(text_.size());
        mpi::check(MPI_Bcast(&length, 1, MPI_INT64_T, 0, comm.get()), "MPI_Bcast");
        text_.resize(static_cast<std::size_t>(length));
        const mpi::Span span(length, MPI_CHAR);
        mpi::check(MPI_Bcast(text_.data(), span.count(), span.type(), 0, comm.get()), "MPI_Bcast");
    }
    std::uint64_t sum() const {
        std::uint64_t sum = 0;
        for (const char character : text_) {
            sum = mix(sum ^ static_cast<unsigned char>(character));
        }
        return sum;
    }

private:
    std::string text_;
    std::size_t at_ = 0;
};

template <class Field> void each_number(io::Region& region, const Field& field) {
    for (std::int64_t* number : {&region.offset, &region.rows, &region.columns, &region.file_bytes}) {
        field(*number);
    }
}

/// The region that rank 0 finds becomes that of every rank. @note Collective.
template <class Find> void fill_alike(const mpi::Communicator& comm, Matrix::State& state, const Find& find) {
    PackedMessage message;
    mpi::together(comm, [&] {
        if (comm.rank() != 0) {
            return;
        }
        io::Region region = find();
        each_number(region, [&](std::int64_t number) { message.put(number); });
        message.put(static_cast<std::int64_t>(region.dtype));
        message.put((region.swap_bytes ? 1 : 0) + (region.column_major ? 2 : 0));
        message.put(region.path);
        message.put(std::ssize(region.tiles));
        for (const io::Tile& tile : region.tiles) {
            message.put(tile.path);
            for (const std::int64_t number : {tile.offset, tile.block.rows.begin, tile.block.rows.end,
                                              tile.block.columns.begin, tile.block.columns.end}) {
                message.put(number);
            }
        }
    });
    message.share(comm);
    mpi::together(comm, [&] {
        io::Region& region = state.region;
        each_number(region, [&](std::int64_t& number) { number = message.number(); });
        region.dtype = static_cast<Dtype>(message.number());
        const std::int64_t flags = message.number();
        region.swap_bytes = flags % 2 == 1;
        region.column_major = flags >= 2;
        region.path = region.name = message.word();
        region.tiles.resize(static_cast<std::size_t>(message.number()));
        for (io::Tile& tile : region.tiles) {
            tile.path = message.word();
            tile.offset = message.number();
            for (std::int64_t* number :
                 {&tile.block.rows.begin, &tile.block.rows.end, &tile.block.columns.begin, &tile.block.columns.end}) {
                *number = message.number();
            }
        }
        state.fingerprint = message.sum();
        state.removes_part = comm.rank() == 0;
    });
}

template <class Find> std::shared_ptr<Matrix::State> shared_state(MPI_Comm parent, const Find& find) {
    auto state = std::make_shared<Matrix::State>();
    fill_alike(mpi::Communicator(parent), *state, find);
    return state;
}

void make_file(const std::string& path, const std::string& header, std::int64_t bytes) {
    unlink(path.c_str());  // what an earlier run has left, or somebody's link to a file that is not ours
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        throw system_error(path + ": could not be created", errno);
    }
    ::close(descriptor);
    io::PosixFile file(path, path, io::PosixFile::Mode::write);
    file.write(reinterpret_cast<const std::byte*>(header.data()), std::ssize(header), 0);
    file.resize(std::ssize(header) + bytes);
    file.close();
}

}  // namespace

Matrix open(MPI_Comm comm, const std::string& path) {
    return MatrixAccess::make(shared_state(comm, [&] {
        if (path.ends_with(".tiles")) {
            return library::read_tiles(path);
        }
        if (!ends_with_npy(path)) {
            throw UsageError(path + ": only .npy files and .tiles folders can be opened without a RawFile");
        }
        return library::read_npy(path);
    }));
}

Matrix open(MPI_Comm comm, const std::string& path, const RawFile& raw) {
    return MatrixAccess::make(shared_state(comm, [&] {
        io::Region region;
        region.path = region.name = path;
        region.offset = raw.offset;
        region.rows = raw.rows;
        region.columns = raw.columns;
        region.dtype = raw.dtype;
        region.column_major = raw.order == Order::column_major;
        region.swap_bytes = raw.big_endian != (std::endian::native == std::endian::big);
        const std::int64_t size = io::PosixFile(path, path, io::PosixFile::Mode::read).size();
        if (raw.rows < 0 || raw.columns < 0 || raw.offset < 0 || raw.offset + region.bytes() > size) {
            throw UsageError(path + " has " + std::to_string(size) + " bytes, but the numbers would end at byte " +
                             std::to_string(raw.offset + region.bytes()));
        }
        region.file_bytes = size;
        return region;
    }));
}

MutableMatrix create(MPI_Comm comm, const std::string& path, std::int64_t rows, std::int64_t columns, Dtype dtype,
                     const NewFile& file) {
    const auto state = shared_state(comm, [&] {
        if (rows < 0 || columns < 0) {
            throw UsageError(path + ": the numbers of rows and columns must not be negative");
        }
        struct stat found{};
        if (!file.replace && lstat(path.c_str(), &found) == 0) {
            throw UsageError(path + " exists already; NewFile::replace replaces it");
        }
        io::Region region;
        region.path = path + ".part";
        region.rows = rows;
        region.columns = columns;
        region.dtype = dtype;
        region.column_major = file.order == Order::column_major;
        const std::string header =
            ends_with_npy(path) ? library::npy_header(rows, columns, dtype, region.column_major) : "";
        region.offset = std::ssize(header);
        region.file_bytes = region.offset + region.bytes();
        make_file(region.path, header, region.bytes());
        return region;
    });
    state->region.name = path;
    state->final_path = path;
    return MatrixAccess::make_mutable(state);
}

Matrix generated(std::int64_t rows, std::int64_t columns, Dtype dtype, Generator generator, std::uint64_t seed) {
    constexpr std::array names{"random", "normal", "identity", "ramp", "graded"};
    auto state = std::make_shared<Matrix::State>();
    io::Region& region = state->region;
    region.rows = rows;
    region.columns = columns;
    region.dtype = dtype;
    region.generator = names.at(static_cast<std::size_t>(generator));
    region.seed = seed;
    PackedMessage message;
    for (const std::int64_t number : {rows, columns, static_cast<std::int64_t>(dtype),
                                      static_cast<std::int64_t>(generator), static_cast<std::int64_t>(seed)}) {
        message.put(number);
    }
    state->fingerprint = message.sum();
    return MatrixAccess::make(state);
}

}  // namespace tilewise::inline api
