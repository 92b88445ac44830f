// Writes down what the driver says.
#include "tilewise/worker/devices.hpp"

#include <vector>

#include "tilewise/device/facts.hpp"
#include "tilewise/worker/json.hpp"

namespace tilewise::worker {

std::string describe_devices() {
    const device::Facts facts = device::facts();
    std::vector<Json> devices;
    for (const device::DeviceFacts& one : facts.devices) {
        devices.push_back(Json{{"name", one.name},
                               {"compute", one.compute},
                               {"memory", one.memory},
                               {"unified_addressing", one.unified_addressing},
                               {"managed", one.managed},
                               {"migrates", one.migrates},
                               {"peers", one.peers}});
    }
    const Json said{{"driver", facts.driver},
                    {"trouble", facts.found.trouble},
                    {"simulated", facts.found.simulated},
                    {"devices", devices}};
    return said.text();
}

}  // namespace tilewise::worker
