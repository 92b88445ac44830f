// Rank 0 looks at files and makes them; what it found goes to all ranks as one message.
//
// Files say themselves what they hold: the header of a .npy file is a Python dictionary and the manifest of a folder of
// tiles a JSON object, so alike that one reader does for both: keys in any order, any blanks, no escapes.
#include "tilewise/library/files.hpp"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

#include "tilewise/base/memory.hpp"
#include "tilewise/base/random.hpp"
#include "tilewise/io/file.hpp"
#include "tilewise/io/region.hpp"
#include "tilewise/library/matrix_state.hpp"
#include "tilewise/mpi/datatype.hpp"
#include "tilewise/mpi/sum.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::inline api {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::int64_t longest_header = std::int64_t{8} << 20, longest_manifest = std::int64_t{64} << 20;
constexpr std::int64_t page_aligned_from = std::int64_t{1} << 20;
constexpr bool big_endian_machine = std::endian::native == std::endian::big;

UsageError no_npy(const std::string& name, const std::string& why) {
    return UsageError(name + " is not a readable .npy file: " + why);
}

/// The first bytes of a file, at most so many.
std::string first_bytes(const std::string& path, std::int64_t most) {
    const io::PosixFile file(path, path, io::PosixFile::Mode::read);  // which refuses what is no regular file
    std::string bytes(static_cast<std::size_t>(std::min(file.size(), most)), '\0');
    file.read(reinterpret_cast<std::byte*>(bytes.data()), std::ssize(bytes), 0);
    return bytes;
}

/// Walks through the text; `complaint` begins what is said where it is not as expected.
class Reader {
public:
    Reader(std::string_view text, std::string complaint) : text_(text), complaint_(std::move(complaint)) {}

    [[noreturn]] void fail(const std::string& why) const { throw UsageError(complaint_ + why); }

    /// Takes `letter` where it is next, after blanks.
    bool take(char letter) {
        while (!text_.empty() && std::isspace(static_cast<unsigned char>(text_.front())) != 0) {
            text_.remove_prefix(1);
        }
        const bool found = !text_.empty() && text_.front() == letter;
        text_.remove_prefix(found ? 1 : 0);
        return found;
    }
    void need(char letter) {
        if (!take(letter)) {
            fail(std::string("no '") + letter + "' where one was expected");
        }
    }
    /// Calls f() for what stands between two brackets and commas, of which one may be behind the last.
    template <class F> void each(char begin, char end, F f) {
        need(begin);
        while (!take(end)) {
            f();
            if (!take(',')) {
                need(end);
                return;
            }
        }
    }
    /// Calls f(key) where its value begins.
    template <class F> void each_entry(F f) {
        each('{', '}', [&] {
            const std::string_view key = quoted();
            need(':');
            f(key);
        });
    }
    std::string_view quoted() {
        const char quote = take('\'') ? '\'' : '"';
        if (quote == '"') {
            need('"');
        }
        const std::size_t end = text_.find(quote);
        if (end == std::string_view::npos) {
            fail("a string does not end");
        }
        const std::string_view word = text_.substr(0, end);
        text_.remove_prefix(end + 1);
        return word;
    }
    bool truth() {
        take(' ');
        const bool yes = text_.starts_with("True");
        if (!yes && !text_.starts_with("False")) {
            fail("neither True nor False");
        }
        text_.remove_prefix(yes ? 4 : 5);
        return yes;
    }
    std::int64_t whole() {
        take(' ');
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), number);
        if (error != std::errc{} || number < 0) {
            fail("a whole number was expected");
        }
        text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
        take('L');  // as Python 2 wrote long numbers
        return number;
    }
    std::vector<std::int64_t> numbers(char begin, char end) {
        std::vector<std::int64_t> all;
        each(begin, end, [&] { all.push_back(whole()); });
        return all;
    }
    grid::Range range() {
        const std::vector<std::int64_t> both = numbers('[', ']');
        if (both.size() != 2) {
            fail("two numbers were expected");
        }
        return {both[0], both[1]};
    }

private:
    std::string_view text_;
    std::string complaint_;
};

/// "<f8": byte order, kind, bytes.
void take_type(io::Region& region, std::string_view word, const std::string& name) {
    constexpr std::string_view kinds = "iufcb";
    constexpr std::array prefixes{"int", "uint", "float", "complex"};
    const char side = word.empty() ? ' ' : word.front();
    const bool has_side = side == '<' || side == '>' || side == '|' || side == '=';
    const std::string_view code = word.substr(has_side ? 1 : 0);
    const std::size_t kind = code.empty() ? std::string_view::npos : kinds.find(code.front());
    int bytes = 0;
    if (kind != std::string_view::npos) {
        std::from_chars(code.data() + 1, code.data() + code.size(), bytes);
    }
    const bool truths = code == "b1";  // numpy's bool is a byte of 0 or 1
    const auto dtype = truths                   ? std::optional(Dtype::uint8)
                       : kind < prefixes.size() ? dtype_named(prefixes.at(kind) + std::to_string(8 * bytes))
                                                : std::nullopt;
    if (!dtype) {
        throw UsageError(name + " holds '" + std::string(word) + "', but numbers were expected");
    }
    region.dtype = *dtype;
    region.swap_bytes = size_of(*dtype) > 1 && (side == '<' || side == '>') && (side == '>') != big_endian_machine;
}

std::string letter_of(Dtype dtype) {
    return is_complex(dtype) ? "c" : !is_integer(dtype) ? "f" : dtype <= Dtype::int64 ? "i" : "u";
}

io::Tile tile_of(Reader& reader, const std::string& folder) {
    io::Tile tile;
    reader.each_entry([&](std::string_view key) {
        if (key == "file") {
            const std::string_view file = reader.quoted();
            if (file.empty() || file == "." || file == ".." ||
                file.find_first_of(std::string_view("/\\\0", 3)) < file.size()) {
                reader.fail("it names a file outside its own folder");
            }
            tile.path = folder + "/" + std::string(file);
        } else if (key == "rows" || key == "columns") {
            (key == "rows" ? tile.block.rows : tile.block.columns) = reader.range();
        } else {
            reader.fail("a tile has the key '" + std::string(key) + "'");
        }
    });
    return tile;
}

void require_sane(const io::Region& region) {
    constexpr std::int64_t largest = std::int64_t{1} << 62;
    const auto item = static_cast<std::int64_t>(size_of(region.dtype));
    if (region.rows > largest || region.columns > largest ||
        (region.rows > 0 && region.columns > largest / item / region.rows)) {
        throw UsageError(region.name + " declares the shape " + std::to_string(region.rows) + "x" +
                         std::to_string(region.columns) + ", which no array can have");
    }
}

/// What the bytes before the numbers of a .npy file say, from its first byte on; `region.offset` is where the
/// numbers begin.
io::Region parse_npy(std::string_view begin, const std::string& name) {
    const auto byte = [&](std::size_t at) { return static_cast<std::int64_t>(static_cast<unsigned char>(begin[at])); };
    if (!begin.starts_with(magic) || begin.size() < 12) {
        throw no_npy(name, "it does not begin like one");
    }
    const std::int64_t version = byte(6);
    if (version < 1 || version > 3 || byte(7) != 0) {
        throw no_npy(name, "it is version " + std::to_string(version) + "." + std::to_string(byte(7)) +
                               "; versions 1.0 to 3.0 are supported");
    }
    const std::int64_t start = version == 1 ? 10 : 12;
    std::int64_t length = byte(8) + 256 * byte(9);
    length += version == 1 ? 0 : 65536 * (byte(10) + 256 * byte(11));
    if (length > longest_header || start + length > std::ssize(begin)) {
        throw no_npy(name, "its header claims to be " + std::to_string(length) + " bytes long");
    }
    Reader reader(begin.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(length)),
                  name + " is not a readable .npy file: in its header ");
    io::Region region;
    region.name = name;
    region.offset = start + length;
    std::optional<std::vector<std::int64_t>> shape;
    int keys = 0;
    reader.each_entry([&](std::string_view key) {
        ++keys;
        if (key == "descr") {
            take_type(region, reader.quoted(), name);
        } else if (key == "fortran_order") {
            region.column_major = reader.truth();
        } else if (key == "shape") {
            shape = reader.numbers('(', ')');
        } else {
            reader.fail("the key '" + std::string(key) + "'");
        }
    });
    if (keys != 3 || !shape) {
        reader.fail("a key is missing or duplicated");
    }
    if (shape->empty() || shape->size() > 2) {
        throw UsageError(name + " has " + std::to_string(shape->size()) + " dimensions, but a matrix has 2");
    }
    region.rows = shape->front();
    region.columns = shape->size() == 2 ? shape->back() : 1;  // one dimension is a column
    require_sane(region);
    return region;
}

/// The matrix in the .npy file at `path`. Throws UsageError for what is none, or whose size is not what its header
/// promises, and IoError.
io::Region read_npy(const std::string& path) {
    constexpr std::int64_t longest_of_first_version = 10 + 65535;
    std::string begin = first_bytes(path, longest_of_first_version);
    if (begin.size() > 6 && begin[6] != 1) {
        begin = first_bytes(path, 12 + longest_header);
    }
    io::Region region = parse_npy(begin, path);
    region.path = path;
    region.file_bytes = region.offset + region.bytes();
    const std::int64_t size = io::PosixFile(path, path, io::PosixFile::Mode::read).size();
    if (size != region.file_bytes) {
        throw UsageError(path + " has " + std::to_string(size) + " bytes, but its header promises " +
                         std::to_string(region.file_bytes));
    }
    return region;
}

/// The bytes before the numbers of a new .npy file, in this machine's byte order. Numbers of 1 MiB and more begin at
/// byte 4096, so that ranks share no page with the header.
std::string npy_header(std::int64_t rows, std::int64_t columns, Dtype dtype, bool column_major) {
    const auto item = static_cast<std::int64_t>(size_of(dtype));
    std::string text = "{'descr': '" +
                       std::string(item == 1            ? "|"
                                   : big_endian_machine ? ">"
                                                        : "<") +
                       letter_of(dtype) + std::to_string(item) +
                       "', 'fortran_order': " + (column_major ? "True" : "False") + ", 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(columns) + ")}";
    const std::int64_t step = rows * columns * item >= page_aligned_from ? page : 64, lead = 10;
    const std::int64_t total = (lead + std::ssize(text) + 1 + step - 1) / step * step;
    text.append(static_cast<std::size_t>(total - lead - std::ssize(text) - 1), ' ');
    const std::int64_t length = total - lead;
    return std::string(magic) + '\x01' + '\0' + static_cast<char>(length % 256) + static_cast<char>(length / 256) +
           text + '\n';
}

/// The matrix in the folder of tiles at `path`, each of which must be what the manifest promises. Errors as above.
io::Region read_tiles(const std::string& path) {
    const std::string manifest_path = path + "/manifest.json";
    const std::string text = first_bytes(manifest_path, longest_manifest);
    io::Region region;
    region.path = region.name = path;
    Reader reader(text, manifest_path + " is not a manifest of tiles: ");
    int keys = 0;
    reader.each_entry([&](std::string_view key) {
        ++keys;
        if (key == "tilewise" && reader.whole() == 1) {
        } else if (key == "shape") {
            const grid::Range shape = reader.range();
            region.rows = shape.begin;
            region.columns = shape.end;
        } else if (const auto dtype = key == "dtype" ? dtype_named(reader.quoted()) : std::nullopt) {
            region.dtype = *dtype;
        } else if (key == "tiles") {
            reader.each('[', ']', [&] { region.tiles.push_back(tile_of(reader, path)); });
        } else {
            reader.fail("another version, an unknown type, or the unknown key '" + std::string(key) + "'");
        }
    });
    if (keys != 4) {
        reader.fail("a key is missing or duplicated");
    }
    require_sane(region);
    std::vector<grid::Block> blocks;
    for (io::Tile& tile : region.tiles) {
        const io::Region found = read_npy(tile.path);
        const bool first = blocks.empty();
        if (found.rows != tile.block.rows.size() || found.columns != tile.block.columns.size() ||
            found.dtype != region.dtype || found.column_major || (!first && found.swap_bytes != region.swap_bytes)) {
            throw UsageError(tile.path + " is not the tile that the manifest declares");
        }
        region.swap_bytes = found.swap_bytes;
        tile.offset = found.offset;
        blocks.push_back(tile.block);
    }
    library::require_cover(region.rows, region.columns, blocks, path);
    return region;
}

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
        const auto length = mpi::of_root(comm, static_cast<std::int64_t>(text_.size()));
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
            return read_tiles(path);
        }
        if (!ends_with_npy(path)) {
            throw UsageError(path + ": only .npy files and .tiles folders can be opened without a RawFile");
        }
        return read_npy(path);
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
        const std::string header = ends_with_npy(path) ? npy_header(rows, columns, dtype, region.column_major) : "";
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
