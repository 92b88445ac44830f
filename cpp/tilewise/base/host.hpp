// The machine that this process is on: its name, its view of files, and the memory that may still be taken.
#pragma once

#include <cstdint>
#include <string>

namespace tilewise {

std::string host_name();

/// The same for two processes only where a path means the same file to both: the host, since when it runs, and the
/// mounts that the process sees, of which a container has its own. `machine/host.py` makes the same text.
std::string file_view();

/// Bytes that can be taken without swapping, never more than the tightest control group leaves; −1 where the system
/// does not say. As in `machine/memory.py`; tests name other folders.
std::int64_t available_memory(const std::string& proc = "/proc", const std::string& cgroup = "/sys/fs/cgroup");

/// Bytes of memory that this process holds and no file backs.
std::int64_t own_memory();

/// `count` bytes in binary units with three figures: "1.50 GiB".
std::string bytes_text(std::int64_t count);

}  // namespace tilewise
