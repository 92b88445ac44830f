"""What disturbs a measurement is seen and labelled, and what does not is not: on made-up nodes and here."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tilewise.machine.disturbance import Disturbance, Watch, own_seconds

BUSY = "other programs busy (0.9 cores)"
STOLEN = "core stolen by the hypervisor (4 %)"
WAITING = "other programs busy (waiting for a core 93 % of the time)"
QUIET = {"before": [3.25e-3, 3.30e-3], "after": [3.33e-3, 3.28e-3]}


class Node:
    """A node of made-up files, on which time passes as told. All times are seconds; `cores` are its CPUs."""

    def __init__(self, folder: Path, cores: int = 2) -> None:
        self.proc, self.sys = folder / "proc", folder / "sys"
        self.cores = cores
        self.clock = self.own = self.pressure = self.kernel = 0.0
        self.busy, self.stolen = [100.0] * cores, [5.0] * cores
        self.runnable = 1
        self.megahertz = 2600.0
        self.shows: set[str] = {"pressure", "kernel", "cpuinfo"}
        self.write()

    def put(self, name: str, text: str) -> None:
        path = self.proc.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def write(self) -> None:
        lines = ["cpu 0 0 0 0 0 0 0 0 0 0"]
        for core in range(self.cores):
            busy, stolen = round(100 * self.busy[core]), round(100 * self.stolen[core])
            idle = round(100 * (1000 + self.clock)) - busy - stolen - 7
            lines.append(f"cpu{core} {busy - 30} 20 10 {idle} 4 2 1 {stolen} 0 0")
        self.put("proc/stat", "\n".join([*lines, "intr 5 0 0", f"procs_running {self.runnable}"]))
        if "pressure" in self.shows:
            total = round(1e6 * self.pressure)
            self.put("proc/pressure/cpu", f"some avg10=0.00 total={total}\nfull avg10=0.00 total=0")
        if "kernel" in self.shows:
            self.put("proc/2/stat", "2 (kthreadd) S 0 0 0")
            self.put("proc/2/task/2/children", "7 8 ")
            spent = round(100 * self.kernel)
            self.put("proc/7/stat", f"7 (kworker/u 2) I 2 0 0 0 -1 0 0 0 0 0 {spent} 0 0 0 20 0 1 0")
            # 8 has gone between listing and reading
        if "cpuinfo" in self.shows:
            each = (f"processor\t: {core}\ncpu MHz\t\t: {self.megahertz:.3f}" for core in range(self.cores))
            self.put("proc/cpuinfo", "\n\n".join(each))
        self.put("sys/online", f"0-{self.cores - 1}")

    def watch(self, cpus: set[int] | None = None, light: bool = False) -> Watch:
        return Watch(
            str(self.proc),
            str(self.sys),
            set(range(self.cores)) if cpus is None else cpus,
            lambda: self.clock,
            lambda: self.own,
            light,
        )

    def run(self, seconds: float = 1.0, own: float = 1.9, others: float = 0.0, core: int = 0) -> None:
        """A launch of that many processor seconds, and others that took some of `core`."""
        self.clock += seconds
        self.own += own
        for each in range(self.cores):
            self.busy[each] += own / self.cores
        self.busy[core] += others
        self.write()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def seen(watch: Watch, **more: object) -> Disturbance:
    said: dict[str, object] = {
        "launch": 3,
        "what": "messages",
        "yardstick": QUIET,
        "switches": [4, 5],
        **more,
    }
    return watch.seen(**said)  # type: ignore[arg-type]


def test_a_quiet_launch_has_no_label(node: Node) -> None:
    watch = node.watch()
    node.stolen[0] += 0.01
    node.pressure += 0.2
    node.run(own=1.5, others=0.02)
    disturbance = seen(watch)
    assert disturbance.labels == []
    assert (disturbance.launch, disturbance.what, disturbance.seconds) == (3, "messages", 1.0)
    assert disturbance.others == pytest.approx(0.01, abs=0.003)
    assert disturbance.stolen == pytest.approx(0.005, abs=1e-4)
    assert disturbance.slowdown == pytest.approx(3.33 / 3.25 - 1)
    assert (
        disturbance.switches == 9 and disturbance.megahertz == (2600, 2600) and not disturbance.oversubscribed
    )


@pytest.mark.parametrize(
    ("changes", "run", "more", "labels", "shares"),
    [
        ({}, {"seconds": 2.0, "own": 2.2, "others": 1.8}, {}, [BUSY], {"others": 0.45}),
        ({}, {"seconds": 0.1, "own": 0.1, "others": 0.02}, {}, [], {}),  # a single tick
        ({"kernel": 0.8}, {"own": 1.0, "others": 0.8}, {}, [], {"others": 0.0}),  # they write our files
        ({"pressure": 0.93}, {"others": 0.03}, {}, [WAITING], {}),  # a neighbour of low priority
        ({"pressure": 0.93}, {}, {"oversubscribed": True}, ["oversubscribed"], {}),
        ({"stolen": [5.08, 5.0]}, {"own": 1.0}, {}, [STOLEN], {"stolen": 0.04}),
        ({"megahertz": 2100.0}, {}, {}, ["frequency changed (2.60 to 2.10 GHz)"], {}),
    ],
)
def test_what_has_a_label(
    node: Node,
    changes: dict[str, Any],
    run: dict[str, float],
    more: dict[str, Any],
    labels: list[str],
    shares: dict[str, float],
) -> None:
    watch = node.watch()
    for name, value in changes.items():
        setattr(node, name, value)
    node.run(**run)
    disturbance = seen(watch, **more)
    assert disturbance.labels == labels
    assert {name: getattr(disturbance, name) for name in shares} == pytest.approx(shares, abs=0.01)


@pytest.mark.parametrize("light", [True, False])
def test_a_lower_ceiling_is_told_and_what_idle_cores_run_at_is_not(node: Node, light: bool) -> None:
    for core in range(2):
        node.put(f"sys/cpu{core}/cpufreq/scaling_max_freq", "3400000")
    still, lowered = node.watch(light=light), node.watch(light=light)
    node.run(own=1.5)
    disturbance = seen(still)
    assert disturbance.labels == [] and disturbance.ceiling == (3400, 3400)
    for core in range(2):
        node.put(f"sys/cpu{core}/cpufreq/scaling_max_freq", "2100000")
    disturbance = seen(lowered)
    assert disturbance.labels == ["frequency changed (ceiling 3.40 to 2.10 GHz)"]
    assert disturbance.words() == ["frequency"]


def test_a_light_look_leaves_out_the_kernel_and_the_clock_of_cores(node: Node) -> None:
    """Of made-up cores all changes are of the first field: what programs do outside the kernel."""
    watch = node.watch(light=True)
    (node.proc / "2" / "stat").unlink()
    node.megahertz = 900.0
    node.run(own=1.5, others=0.5)
    disturbance = watch.seen(launch=0, what="multiply")
    assert disturbance.labels == ["other programs busy (0.5 cores)"] and disturbance.words() == ["busy"]
    assert disturbance.megahertz is None and disturbance.others == pytest.approx(0.25, abs=0.01)


def test_ranks_that_others_started_are_not_taken_for_others(node: Node) -> None:
    watch = node.watch(light=True)
    node.stolen[1] += 0.5
    node.run(own=0.1, others=1.8)
    disturbance = watch.seen(launch=0, what="multiply", ours=False, oversubscribed=True)
    assert disturbance.others is None
    assert disturbance.words() == ["oversubscribed", "stolen"]


def test_cores_that_are_too_hot(node: Node) -> None:
    node.put("sys/cpu1/thermal_throttle/core_throttle_count", "7")
    node.put("sys/cpu1/thermal_throttle/package_throttle_count", "2")
    watch = node.watch(light=True)
    node.run()
    assert watch.seen(launch=0, what="multiply").throttled == 0
    node.put("sys/cpu1/thermal_throttle/core_throttle_count", "10")
    disturbance = watch.seen(launch=0, what="multiply")
    assert disturbance.labels == ["cores too hot (slowed down 3 times)"]
    assert disturbance.words() == ["frequency"] and disturbance.throttled == 3


def test_a_light_look_takes_less_than_a_millisecond_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few files, however many threads the kernel and however many cores the node has."""
    from tilewise.machine import host

    asked: list[Path] = []
    text_of = host.text_of
    monkeypatch.setattr(host, "text_of", lambda path: asked.append(path) or text_of(path))  # type: ignore[func-returns-value]
    Watch(cpus=range(512), light=True)
    assert 2 <= len(asked) <= 3 + 32


def test_only_cores_that_we_may_use_count(tmp_path: Path) -> None:
    node = Node(tmp_path, cores=8)
    watch = node.watch({0, 1})
    node.busy[5] += 1.0
    node.pressure += 1.0
    node.clock += 1.0
    node.write()
    disturbance = seen(watch)
    assert disturbance.labels == [] and disturbance.others == 0.0


def test_without_pressure_what_is_ready_to_run_counts(node: Node) -> None:
    node.shows.discard("pressure")
    (node.proc / "pressure/cpu").unlink()
    node.runnable = 3
    node.write()
    watch = node.watch()
    node.runnable = 2
    node.run()
    assert seen(watch).labels == ["other programs busy (1 ready to run before and after)"]
    watch = node.watch()
    node.runnable = 1
    node.run()
    assert seen(watch).labels == []


def test_frequency_that_rises_matters_only_where_the_work_shows_it(node: Node) -> None:
    for yardstick, labels in (
        (QUIET, []),
        (
            {"before": [3.9e-3, 4.0e-3], "after": [3.0e-3, 3.0e-3]},
            ["frequency changed (0.80 to 3.60 GHz)", "cores slowed down (yardstick +30 %)"],
        ),
    ):
        node.megahertz = 800.0
        node.write()
        watch = node.watch()
        node.megahertz = 3600.0
        node.run()
        assert seen(watch, yardstick=yardstick).labels == labels


def test_cpufreq_is_asked_before_cpuinfo(node: Node) -> None:
    for core, kilohertz in ((0, 3_000_000), (1, 2_000_000)):
        node.put(f"sys/cpu{core}/cpufreq/scaling_cur_freq", str(kilohertz))
    watch = node.watch()
    node.run()
    assert seen(watch).megahertz == (2500, 2500)


def test_slower_cores(node: Node) -> None:
    cases = [
        ({"before": [3.2e-3, 3.3e-3], "after": [3.6e-3, 3.7e-3]}, ["cores slowed down (yardstick +12 %)"]),
        ({"before": [3.2e-3, 4.0e-3], "after": [3.2e-3, 4.0e-3]}, ["cores slowed down (yardstick +25 %)"]),
        ({"before": [3.2e-3, 3.2e-3], "after": [3.2e-3, 7.0e-3]}, []),  # one interruption is no slow core
        ({}, []),
    ]
    for yardstick, labels in cases:
        watch = node.watch()
        node.run()
        disturbance = seen(watch, yardstick=yardstick)
        assert disturbance.labels == labels
        assert (disturbance.slowdown is None) == (not yardstick)
    watch = node.watch()
    assert seen(watch, yardstick=cases[0][0], oversubscribed=True).labels == ["oversubscribed"]
    watch = node.watch()
    node.run(others=0.5)  # who takes a core away slows the yardstick on it
    assert seen(watch, yardstick=cases[0][0]).labels == ["other programs busy (0.5 cores)"]


def test_cores_of_two_kinds_may_differ(node: Node) -> None:
    node.put("sys/cpu0/cpu_capacity", "1024")
    node.put("sys/cpu1/cpu_capacity", "600")
    watch = node.watch()
    node.run()
    assert seen(watch, yardstick={"before": [3.2e-3, 5e-3], "after": [3.2e-3, 5e-3]}).labels == []


def test_what_a_system_does_not_say_is_left_open(tmp_path: Path) -> None:
    watch = Watch(str(tmp_path), str(tmp_path), {0}, lambda: 0.0, lambda: 0.0)
    disturbance = watch.seen(launch=0, what="memory")
    assert (
        disturbance.stolen,
        disturbance.others,
        disturbance.slowdown,
        disturbance.switches,
        disturbance.megahertz,
    ) == (None,) * 5
    assert disturbance.labels == []


@contextmanager
def kept_busy(*before: str, new_session: bool = False) -> Iterator[None]:
    """A core that a neighbour keeps busy, for a minute at most."""
    command = [*before, "timeout", "60", "sh", "-c", "while :; do :; done"]
    with subprocess.Popen(command, start_new_session=new_session) as neighbour:
        try:
            time.sleep(0.2)
            yield
        finally:
            neighbour.send_signal(signal.SIGTERM)
            neighbour.wait(60)


@pytest.mark.parametrize("before", [(), ("nice", "-n", "19")])
@pytest.mark.parametrize("new_session", [False, True])
def test_a_busy_neighbour_is_seen_on_this_machine(before: tuple[str, ...], new_session: bool) -> None:
    with kept_busy(*before, new_session=new_session):
        watch = Watch()
        time.sleep(0.8)
        disturbance = watch.seen(launch=0, what="nothing")
    assert any(label.startswith("other programs busy") for label in disturbance.labels), disturbance


def test_children_that_have_ended_are_our_own() -> None:
    begin = own_seconds()
    code = "import time\nwhile time.process_time() < 0.1: pass"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert own_seconds() - begin >= 0.1
