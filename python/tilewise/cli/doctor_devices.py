"""What `tilewise doctor` finds about graphics processors: driver, devices, messages between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewise.base.errors import TilewiseError
from tilewise.base.units import bytes_text, plural
from tilewise.cli.doctor_start import Finding
from tilewise.lab.measurement import device_trial
from tilewise.lab.measurement.points import ON_DEVICE
from tilewise.launch import signals
from tilewise.launch.constants import Device, devices, no_graphics


def findings(worker: str) -> Iterator[Finding]:
    """Everything that --buffer depends on. One line where there is no device, as nothing is wrong then."""
    found = devices(worker)
    if why := no_graphics(found):
        yield Finding("devices", f"{why}, so measure --buffer only supports malloc")
        return
    played = " simulated by the driver of the tests" if found.simulated else ""
    driver = "" if found.simulated else module_version()
    count = plural(len(found.devices), "graphics processor")
    yield Finding("devices", f"{driver}CUDA {found.driver}, {count}{played}")
    for number, device in enumerate(found.devices):
        yield Finding(f"device {number}", _device(device))
    yield _messages()


def module_version(path: str = "/proc/driver/nvidia/version") -> str:
    """`driver 550.54.15, ` as the kernel's module says; empty where it does not."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            found = re.search(r"Kernel Module(?: for \S+)?\s+(\d[\d.]*)", file.read())
    except OSError:
        return ""
    return f"driver {found[1]}, " if found else ""


def _device(device: Device) -> str:
    said = [device.name, bytes_text(device.memory), f"compute {device.compute}"]
    said += [
        what if there else f"no {what}"
        for what, there in (
            ("unified addressing", device.unified_addressing),
            ("managed memory", device.managed),
            ("page migration", device.migrates),
        )
    ]
    peers = ", ".join(map(str, device.peers))
    return ", ".join([*said, f"peer access to {peers}" if peers else "no peer access"])


def _messages() -> Finding:
    """What MPI says of itself, and what becomes of it when it is given addresses on a device."""
    said = {"yes": "MPI says it takes their addresses", "no": "MPI says it takes no addresses of theirs"}
    try:
        with signals.watched() as caught:
            asked = said.get(
                device_trial.says("", caught), "MPI does not say whether it takes their addresses"
            )
            answers = {kind: device_trial.tried(device_trial.here(), kind, "", caught) for kind in ON_DEVICE}
    except TilewiseError as error:
        return Finding("messages", f"no trial was possible: {error.message}", "note", error.advice)
    tried = "; ".join(
        f"from {kind} memory " + ("they arrive" if one.takes else f"they do not arrive: {one.why}")
        for kind, one in answers.items()
    )
    return Finding("messages", f"{asked}; tried, {tried}")
