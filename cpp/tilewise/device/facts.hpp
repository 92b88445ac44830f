// What the driver and its devices are: for whoever looks at an installation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tilewise/device/driver.hpp"

namespace tilewise::device {

struct DeviceFacts {
    std::string name;     ///< "NAME (number, GPU-UUID)"
    std::string compute;  ///< its generation, as in "9.0"
    std::int64_t memory = 0;
    bool unified_addressing = false;  ///< an address says by itself on which device or host it is
    bool managed = false;             ///< it can have managed memory
    bool migrates = false;            ///< and pages of that move when somebody touches them
    std::vector<int> peers;           ///< devices of this host whose memory it reaches
};

struct Facts {
    Presence found;
    std::string driver;  ///< the CUDA that it offers, as in "12.4"; empty without a driver
    std::vector<DeviceFacts> devices;
};

/// Asks for everything; no context is made. Never throws: what a device does not say stays empty.
Facts facts();

/// Whether the device `number` can reach memory of `other`, both of this host. False where the driver does not say.
bool reaches(int number, int other);

/// "NAME (number, GPU-UUID)" of the driver's handle `device`. Throws IoError.
std::string name_of(const Driver& calls, int device, int number);

}  // namespace tilewise::device
