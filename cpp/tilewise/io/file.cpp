// Loops around pread and pwrite, and messages that say which file and where in it.
#include "tilewise/io/file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "tilewise/base/error.hpp"

namespace tilewise::io {
namespace {

constexpr std::int64_t most_at_once = std::int64_t{1} << 30;  // Linux moves less than 2³¹ bytes a call

/// Of a new file in a folder that never has a name or, on file systems that know no such files, loses it at once.
int open_scratch(const std::string& folder) {
#ifdef O_TMPFILE
    const int descriptor =
        uninterrupted([&] { return open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR); });
    if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) {
        return descriptor;
    }
#endif
    std::string path = folder + "/.tilewise-XXXXXX";
    const int named = mkostemp(path.data(), O_CLOEXEC);
    if (named >= 0) {
        unlink(path.c_str());
    }
    return named;
}

}  // namespace

int open_made(const std::string& path, int flags) {
    flags |= O_NOFOLLOW | O_CLOEXEC;
    const std::size_t slash = path.rfind('/');
    const std::string folder = path.substr(0, slash == std::string::npos ? 0 : slash);
    if (!folder.ends_with(".journal") && !folder.ends_with(".part")) {
        return uninterrupted([&] { return open(path.c_str(), flags, 0666); });
    }
    const int below =
        uninterrupted([&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); });
    if (below < 0) {
        return below;
    }
    const int descriptor = uninterrupted([&] { return openat(below, path.c_str() + slash + 1, flags, 0666); });
    const int reason = errno;
    close(below);
    errno = reason;
    return descriptor;
}

PosixFile::PosixFile(const std::string& path, std::string name, Mode mode, Cache cache)
    : name_(std::move(name)),
      writes_(mode != Mode::read),
      descriptor_(uninterrupted([&] {
          if (mode == Mode::scratch) {
              return open_scratch(path);
          }
          // O_NONBLOCK means nothing to regular files, and keeps a pipe that took a file's place from being waited for.
          const int flags = (cache == Cache::bypassed ? O_DIRECT : 0) | O_NONBLOCK;
          return mode == Mode::read ? open(path.c_str(), flags | O_RDONLY | O_CLOEXEC)
                                    : open_made(path, flags | O_RDWR);
      })) {
    if (!descriptor_) {
        throw system_error(name_ +
                               (mode == Mode::scratch ? ": no scratch file could be made" : ": could not be opened") +
                               (cache == Cache::bypassed ? " past the page cache" : ""),
                           errno);
    }
}

Descriptor::~Descriptor() {
    if (number_ >= 0) {
        close(number_);
    }
}

void PosixFile::close() {
    // Never again after an interrupt: Linux has closed it, and the number may be somebody else's by now.
    if (::close(descriptor_.release()) != 0 && writes_ && errno != EINTR) {
        throw system_error(name_ + ": closing it failed; written data may be lost", errno);
    }
}

void PosixFile::fail(const std::string& what, std::int64_t offset, int error_number) const {
    throw system_error(name_ + ": " + what + " failed at byte " + std::to_string(offset), error_number);
}

std::int64_t PosixFile::read(std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    std::int64_t calls = 0;
    while (bytes > 0) {
        const ssize_t got = uninterrupted([&] {
            return pread(descriptor_.number(), data, static_cast<std::size_t>(std::min(bytes, most_at_once)), offset);
        });
        ++calls;
        if (got == 0) {
            throw IoError(name_ + ": ended at byte " + std::to_string(offset) + " where " + std::to_string(bytes) +
                          " more were expected; did it change during the run?");
        }
        if (got < 0) {
            fail("reading", offset, errno);
        }
        data += got;
        bytes -= got;
        offset += got;
    }
    return calls;
}

std::int64_t PosixFile::write(const std::byte* data, std::int64_t bytes, std::int64_t offset) const {
    std::int64_t calls = 0;
    while (bytes > 0) {
        const ssize_t put = uninterrupted([&] {
            return pwrite(descriptor_.number(), data, static_cast<std::size_t>(std::min(bytes, most_at_once)), offset);
        });
        ++calls;
        if (put < 0) {
            fail("writing", offset, errno);
        }
        data += put;
        bytes -= put;
        offset += put;
    }
    return calls;
}

std::int64_t PosixFile::size() const {
    struct stat facts{};
    if (fstat(descriptor_.number(), &facts) != 0) {
        throw system_error(name_ + ": its size could not be asked", errno);
    }
    if (!S_ISREG(facts.st_mode)) {
        throw IoError(name_ + ": is not a regular file");
    }
    return facts.st_size;
}

void PosixFile::reserve(std::int64_t offset, std::int64_t bytes) const {
#ifdef __linux__
    if (bytes > 0 && uninterrupted([&] { return fallocate(descriptor_.number(), 0, offset, bytes); }) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSYS) {
        throw system_error(name_ + ": " + std::to_string(bytes) + " bytes of disk space could not be had", errno);
    }
#endif
}

void PosixFile::will_need(std::int64_t offset, std::int64_t bytes) const {
    static_cast<void>(posix_fadvise(descriptor_.number(), offset, bytes, POSIX_FADV_WILLNEED));
}

void PosixFile::flush() const {
    if (uninterrupted([&] { return fsync(descriptor_.number()); }) != 0) {
        throw system_error(name_ + ": flushing to disk failed", errno);
    }
}

bool PosixFile::set_lock(short kind, std::int64_t offset, std::int64_t bytes) const {
    struct flock range{};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = offset;
    range.l_len = bytes;
    return uninterrupted([&] { return fcntl(descriptor_.number(), F_SETLKW, &range); }) == 0;
}

RangeLock::RangeLock(const PosixFile& file, std::int64_t offset, std::int64_t bytes)
    : file_(file),
      offset_(offset),
      bytes_(bytes) {
    if (!file.set_lock(F_WRLCK, offset, bytes)) {
        throw system_error(file.name_ + ": bytes from " + std::to_string(offset) + " on could not be locked", errno);
    }
}

// Closing the file lets go of what could not be unlocked.
RangeLock::~RangeLock() { file_.set_lock(F_UNLCK, offset_, bytes_); }

void PosixFile::resize(std::int64_t bytes) const {
    if (uninterrupted([&] { return ftruncate(descriptor_.number(), bytes); }) != 0) {
        throw system_error(name_ + ": could not be given its size of " + std::to_string(bytes) + " bytes", errno);
    }
}

}  // namespace tilewise::io
