// Questions to the driver that need no context.
#include "tilewise/device/facts.hpp"

#include <array>
#include <cstdio>

#include "tilewise/base/error.hpp"

namespace tilewise::device {
namespace {

int asked(const Driver& calls, Attribute which, int device) {
    int value = 0;
    return calls.attribute(&value, which, device) == 0 ? value : 0;
}

DeviceFacts facts_of(const Driver& calls, int number, int devices) {
    DeviceFacts facts;
    int device = 0;
    check(calls.get(&device, number), "cuDeviceGet", number);
    facts.name = name_of(calls, device, number);
    std::size_t memory = 0;
    check(calls.memory(&memory, device), "cuDeviceTotalMem", number);
    facts.memory = static_cast<std::int64_t>(memory);
    facts.compute = std::to_string(asked(calls, Attribute::compute_major, device)) + "." +
                    std::to_string(asked(calls, Attribute::compute_minor, device));
    facts.unified_addressing = asked(calls, Attribute::unified_addressing, device) != 0;
    facts.managed = asked(calls, Attribute::managed_memory, device) != 0;
    facts.migrates = asked(calls, Attribute::concurrent_managed_access, device) != 0;
    for (int other = 0; other < devices; ++other) {
        if (other != number && reaches(number, other)) {
            facts.peers.push_back(other);
        }
    }
    return facts;
}

}  // namespace

bool reaches(int number, int other) {
    const Driver& calls = driver("looking");
    int device = 0, peer = 0, can = 0;
    return calls.get(&device, number) == 0 && calls.get(&peer, other) == 0 &&
           calls.can_access_peer(&can, device, peer) == 0 && can != 0;
}

std::string name_of(const Driver& calls, int device, int number) {
    std::array<char, 256> name{};
    Uuid uuid{};
    check(calls.name(name.data(), static_cast<int>(name.size()) - 1, device), "cuDeviceGetName", number);
    check(calls.uuid(&uuid, device), "cuDeviceGetUuid", number);
    std::string text = "GPU";
    for (int i = 0; i < 16; ++i) {
        std::array<char, 4> digits{};
        std::snprintf(digits.data(), digits.size(), "%02x", static_cast<unsigned>(uuid.bytes[i]));
        text += (i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(digits.data());
    }
    return std::string(name.data()) + " (" + std::to_string(number) + ", " + text + ")";
}

Facts facts() {
    Facts facts;
    facts.found = presence();
    if (facts.found.devices == 0) {
        return facts;
    }
    try {
        const Driver& calls = driver("looking");
        int thousands = 0;
        check(calls.version(&thousands), "cuDriverGetVersion", 0);
        facts.driver = std::to_string(thousands / 1000) + "." + std::to_string(thousands % 1000 / 10);
        for (int number = 0; number < facts.found.devices; ++number) {
            facts.devices.push_back(facts_of(calls, number, facts.found.devices));
        }
    } catch (const Error& error) {
        facts.found.trouble = error.what();
    }
    return facts;
}

}  // namespace tilewise::device
