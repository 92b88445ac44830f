"""This host: its processors, its name, and its links to other machines, as the kernel tells."""

from __future__ import annotations

import glob
import os
import platform

from tilewise.base.errors import Interrupted

_SYS = "/sys/devices/system"
REPORTED_AFTER = 2  # seconds that Linux lets free pages be before it reports them
_BALLOONS = "/sys/bus/virtio/drivers/virtio_balloon/virtio*/features"
_REPORTING = 5  # VIRTIO_BALLOON_F_REPORTING, the place of its bit
_NET = "/sys/class/net"
# Vendor, family, design, and its ranges of models: of x86 processors with AVX2, as their makers list them. A
# virtual machine says `AMD EPYC` only.
_DESIGNS = (
    ("AuthenticAMD", 23, "Zen", ((0x00, 0x2F),)),
    ("AuthenticAMD", 23, "Zen 2", ((0x30, 0xFF),)),
    ("AuthenticAMD", 25, "Zen 3", ((0x00, 0x0F), (0x20, 0x5F))),
    ("AuthenticAMD", 25, "Zen 4", ((0x10, 0x1F), (0x60, 0xAF))),
    ("AuthenticAMD", 26, "Zen 5", ((0x00, 0x7F),)),
    ("GenuineIntel", 6, "Haswell", ((0x3C, 0x3C), (0x3F, 0x3F), (0x45, 0x46))),
    ("GenuineIntel", 6, "Broadwell", ((0x3D, 0x3D), (0x47, 0x47), (0x4F, 0x4F), (0x56, 0x56))),
    ("GenuineIntel", 6, "Skylake", ((0x4E, 0x4E), (0x5E, 0x5E))),
    ("GenuineIntel", 6, "Skylake-SP or Cascade Lake", ((0x55, 0x55),)),
    ("GenuineIntel", 6, "Ice Lake-SP", ((0x6A, 0x6A), (0x6C, 0x6C))),
    ("GenuineIntel", 6, "Ice Lake", ((0x7D, 0x7E),)),
    ("GenuineIntel", 6, "Tiger Lake", ((0x8C, 0x8D),)),
    ("GenuineIntel", 6, "Kaby Lake", ((0x8E, 0x8E), (0x9E, 0x9E))),
    ("GenuineIntel", 6, "Alder Lake", ((0x97, 0x97), (0x9A, 0x9A))),
    ("GenuineIntel", 6, "Sapphire Rapids", ((0x8F, 0x8F),)),
    ("GenuineIntel", 6, "Emerald Rapids", ((0xCF, 0xCF),)),
    ("GenuineIntel", 6, "Granite Rapids", ((0xAD, 0xAE),)),
    ("GenuineIntel", 6, "Sierra Forest", ((0xAF, 0xAF),)),
)


def cpu_list(text: str) -> set[int]:
    """The numbers in a kernel list such as `0-3,8`."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        if part:
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    return cpus


def allowed_cpus() -> set[int]:
    """Logical processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return set(os.sched_getaffinity(0))
    return set(range(os.cpu_count() or 1))


def physical_cores(cpus: set[int], sys: str = _SYS) -> int:
    """Return how many cores `cpus` are: siblings that share a core's arithmetic count once. At least 1."""
    siblings = set()
    for cpu in cpus:
        text = text_of(f"{sys}/cpu/cpu{cpu}/topology/thread_siblings_list")
        siblings.add(min(cpu_list(text) or {cpu}) if text else cpu)
    return max(1, len(siblings))


def quota(path: str = "/sys/fs/cgroup/cpu.max") -> int | None:
    """Whole processors that a container's time limit is worth, or None where there is no limit."""
    fields = text_of(path).split()
    if len(fields) != 2 or not fields[0].isdigit():
        return None
    return max(1, -(-int(fields[0]) // int(fields[1])))


def numa_nodes(cpus: set[int], sys: str = _SYS) -> list[set[int]]:
    """The memory domains that have some of `cpus`, each as the set of its processors. Never empty."""
    nodes = []
    try:
        names = sorted(os.listdir(f"{sys}/node"))
    except OSError:
        names = []
    for name in names:
        if name.startswith("node") and name[4:].isdigit():
            mine = cpu_list(text_of(f"{sys}/node/{name}/cpulist")) & cpus
            if mine:
                nodes.append(mine)
    return nodes or [cpus]


def model_and_flags(path: str = "/proc/cpuinfo") -> tuple[str, frozenset[str]]:
    """The processor's name, with its design where we know it, and its feature flags.

    `AMD EPYC (Zen 5)`; archspec's name where the kernel tells none, as on Arm.
    """
    fields: dict[str, str] = {}
    for line in text_of(path, 65536).splitlines():
        key, _, value = line.partition(":")
        if not line.strip() and fields:
            break  # the first processor's lines end
        fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name", "") or _archspec_name()
    numbers = fields.get("cpu family", ""), fields.get("model", "")
    known = design(fields.get("vendor_id", ""), *map(int, numbers)) if all(map(str.isdigit, numbers)) else ""
    flags = frozenset((fields.get("flags") or fields.get("Features", "")).split())
    return f"{name} ({known})" if known else name, flags


def cache_bytes(level: int, sys: str = _SYS) -> int:
    """Bytes of the first core's data or unified cache of `level`, 0 where unknown."""
    for index in range(8):
        folder = f"{sys}/cpu/cpu0/cache/index{index}"
        if (
            text_of(f"{folder}/level").strip() == str(level)
            and text_of(f"{folder}/type").strip() != "Instruction"
        ):
            size = text_of(f"{folder}/size").strip()
            if size[:-1].isdigit():
                return int(size[:-1]) * {"K": 1024, "M": 1024**2}.get(size[-1], 0)
    return 0


def _archspec_name() -> str:
    try:
        import archspec.cpu  # type: ignore[import-untyped]

        return str(archspec.cpu.host().name)
    except Interrupted:
        raise
    except Exception:  # a nicety of the record: no reason of archspec's is worth failing a job for
        return platform.processor() or platform.machine()


def text_of(path: str | os.PathLike[str], most: int = -1) -> str:
    """Return a file of the kernel, without white space around, or its first `most` characters; empty where
    there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(most).strip()
    except OSError:
        return ""


def design(vendor: str, family: int, model: int) -> str:
    """Return the maker's name of a processor's design, such as `Zen 5`; empty where the table lacks it."""
    for maker, its_family, name, models in _DESIGNS:
        if (maker, its_family) == (vendor, family) and any(first <= model <= last for first, last in models):
            return name
    return ""


def name() -> str:
    """This host's name, as ranks tell theirs."""
    return os.uname().nodename


def free_page_reporting(balloons: str = _BALLOONS) -> bool:
    """Return whether this virtual machine tells its host which pages are free, and the host takes them.

    The next program that touches them waits until it gives them back: a file of 200 MB is then written in
    0.2 to 0.5 s instead of 0.07.
    """
    for path in glob.glob(balloons):
        try:
            with open(path, encoding="ascii") as file:
                if file.read()[_REPORTING : _REPORTING + 1] == "1":
                    return True
        except OSError:
            continue
    return False


def file_view() -> str:
    """Return a text that two processes share only where a path means the same file to both.

    That is the host, since when it runs, and the mounts that the process sees, of which a container has its
    own. `cpp/tilewise/base/host.cpp` makes the same text.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = ""
    try:
        mounts = os.readlink("/proc/self/ns/mnt")
    except OSError:
        mounts = ""
    return f"{name()} {boot} {mounts}"


def links(folder: str = _NET) -> dict[str, float]:
    """Bytes a second in each direction of every link that is up and states its speed.

    Virtual ones (a bridge, one end of a container's link) state a speed that means nothing, and are left out;
    so are those of a virtual machine whose host does not tell.
    """
    speeds: dict[str, float] = {}
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return speeds
    for name in names:
        if not os.path.exists(f"{folder}/{name}/device") or text_of(f"{folder}/{name}/operstate") != "up":
            continue
        speed = text_of(f"{folder}/{name}/speed")
        if speed.isdigit() and int(speed) > 0:
            speeds[name] = int(speed) * 1e6 / 8
    return speeds
