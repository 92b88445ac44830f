// What the tests of measured files share: all ranks with a sample of their own, and memory of a device that is only a
// fake.
#pragma once

#include <doctest/doctest.h>
#include <filesystem>

#include "io_cases.hpp"
#include "tilewise/measure/file.hpp"
#include "tilewise/mpi/together.hpp"

namespace tilewise::test::measured_files {

using namespace tilewise::measure;

inline constexpr Stop twice{.least = 2, .most = 2, .warmup = 1, .relative = 0.05, .seconds = 60};

struct World {
    mpi::Communicator comm{MPI_COMM_WORLD};
    Ledger ledger{};
    Context context{comm, ledger};
    test::Scratch scratch{comm, "-sample"};

    Point point(const std::string& name, std::int64_t bytes = 12345, std::int64_t blocks = 3) const {
        Point point;
        point.kind = "file";
        point.name = name;
        point.bytes = bytes;
        point.blocks = blocks;
        point.path = scratch.path;
        point.layout = name == "per_rank" ? "per_rank" : "interleaved";
        point.buffer = "malloc";
        point.cache = "warm";
        point.check = "content";
        return point;
    }
    Measurement run(const Point& point, const FileHooks& hooks = file_hooks(), const Stop& stop = twice) {
        return file_with(hooks, context, point, stop, Clock{});
    }
    /// Nothing of the sample is left, on any rank's word.
    bool clean() const {
        comm.barrier();
        bool gone = !std::filesystem::exists(scratch.path);
        for (int rank = 0; rank < comm.size(); ++rank) {
            gone = gone && !std::filesystem::exists(scratch.path + "." + std::to_string(rank));
        }
        comm.barrier();
        return gone;
    }
};

/// As "device" memory that only to_host and from_host can reach: what lies in it is not what was put there, so that a
/// call that takes it as it is is seen. As "pinned" and "managed" memory that a call takes as it is, and without a
/// stage.
class FakeDevice final : public BlockMemory {
public:
    FakeDevice(std::string name, int device, std::int64_t free)
        : name_(std::move(name)),
          device_(device),
          free_(free),
          mask_(name_ == "device" ? std::byte{0x5a} : std::byte{0}) {}
    ~FakeDevice() override { alive -= bytes_.empty() ? 0 : 1; }

    std::string name() const override { return name_; }
    std::string device() const override { return "Fake (" + std::to_string(device_) + ", GPU-0)"; }
    std::int64_t free_bytes() const override { return free_; }
    void allocate(std::int64_t bytes) override {
        bytes_.resize(static_cast<std::size_t>(bytes));
        ++alive;
    }
    void fill(std::int64_t offset, std::int64_t bytes, Pattern pattern) override {
        for (std::int64_t i = 0; i < bytes; ++i) {
            cell(offset + i) = static_cast<std::byte>(pattern.byte(i)) ^ mask_;
        }
    }
    std::int64_t compare(std::int64_t offset, std::int64_t bytes, Pattern pattern) const override {
        std::vector<std::byte> plain(static_cast<std::size_t>(bytes));
        to_host(plain.data(), offset, bytes);
        return compare_plainly(plain.data(), bytes, pattern);
    }
    std::byte* address() const override { return name_ == "device" ? nullptr : const_cast<std::byte*>(bytes_.data()); }
    std::byte* device_address() const override { return nullptr; }
    std::byte* stage(std::int64_t bytes) override {
        REQUIRE(name_ == "device");
        stage_.resize(static_cast<std::size_t>(bytes));
        return stage_.data();
    }
    void to_host(std::byte* to, std::int64_t offset, std::int64_t bytes) const override {
        for (std::int64_t i = 0; i < bytes; ++i) {
            to[i] = bytes_.at(static_cast<std::size_t>(offset + i)) ^ mask_;
        }
    }
    void from_host(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
        for (std::int64_t i = 0; i < bytes; ++i) {
            cell(offset + i) = from[i] ^ mask_;
        }
    }

    static inline int alive = 0;

private:
    std::byte& cell(std::int64_t at) { return bytes_.at(static_cast<std::size_t>(at)); }

    std::string name_;
    int device_;
    std::int64_t free_;
    std::byte mask_;
    std::vector<std::byte> bytes_, stage_;
};

inline FileHooks fake_hooks(int gpus, std::int64_t free = std::int64_t{1} << 30) {
    FileHooks hooks = file_hooks();
    hooks.devices = [gpus] { return device::Presence{gpus, "", true}; };
    hooks.make_memory = [free](const std::string& name, int device) {
        return std::make_unique<FakeDevice>(name, device, free);
    };
    return hooks;
}

/// What file_with throws; the kind is `internal` and the text empty where it throws nothing.
inline Error thrown(World& world, const Point& point, const FileHooks& hooks = file_hooks()) {
    try {
        world.run(point, hooks);
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorKind::internal, "");
}

inline bool says(const Error& error, const std::string& text) {
    return std::string(error.what()).find(text) != std::string::npos;
}

}  // namespace tilewise::test::measured_files
