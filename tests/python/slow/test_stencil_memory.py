"""What `tilewise stencil` says that it needs: fields as they are stored, bands, messages, lines, depths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy
import pytest
from conftest import Done, InProcess, Tilewise, one_message
from tilewise import files
from tilewise.files.formats import format_of
from tilewise.files.region import Region
from tilewise.launch.job import Variant
from tilewise.operations.stencil import cost
from tilewise.operations.stencil.cut import Cut
from tilewise.operations.stencil.options import Stencil
from tilewise.planning import need, proof
from tilewise.planning.need import Files

JOB = ("stencil", "--force")


def variant(**fields: Any) -> Variant:
    way: dict[str, Any] = {"ranks": 1, "grid": (1, 1), "depth": 10, "threads": 1, "kernel": "fast"}
    way |= {"algorithm": "sweeps", "exchange": "none", "read": "positioned", "write": "positioned"}
    return Variant(**way | fields)


def needed(cut: Cut, way: Variant, both: Files, verify: str = "off") -> need.Need:
    return cost.stencil_need(cut, "float64", way, verify, 100, both)


@pytest.fixture
def both(tmp_path: Path) -> Files:
    numpy.save(tmp_path / "A.npy", numpy.ones((40, 50)))
    return Files(source=files.inspect(str(tmp_path / "A.npy")), kind=format_of("a.npy"), order="C")


def test_fields_lie_as_they_are_stored(both: Files) -> None:
    """By columns they are the fields of the turned matrix on the turned grid, padding and all."""
    for kernel in ("fast", "plain"):
        tall = Cut(rows=90_000, columns=40, radius=1, by_rows=True)
        turned = Cut(rows=40, columns=90_000, radius=1, by_rows=False)
        way, mirrored = (variant(ranks=6, grid=grid, kernel=kernel) for grid in ((3, 2), (2, 3)))
        assert needed(tall, way, both) == needed(turned, mirrored, both)
        # Every one of 90,000 short rows is padded to cache lines, and has its margins.
        assert cost.field_bytes(turned, "float64", variant()) >= 2 * 90_000 * (8 + 40 + 24) * 8


def test_every_band_of_the_plain_kernel_has_fields_of_its_own(both: Files) -> None:
    cut = Cut(rows=4000, columns=1000, radius=1, by_rows=True)
    found = {
        (threads, depth): needed(cut, variant(kernel="plain", threads=threads, depth=depth), both).buffers
        for threads in (1, 4, 16)
        for depth in (1, 200)
    }
    assert found[1, 1] == found[16, 1]
    bands = {
        threads: (4000 // threads + 2 * 199) * (1000 + 2 * 199) * 8 * 2 * threads for threads in (1, 4, 16)
    }
    for threads, least in bands.items():
        assert least <= found[threads, 200] <= least + (1 << 20)
        assert found[threads, 200] <= threads * cost.field_bytes(cut, "float64", variant(depth=200))


def test_single_numbers_are_single_messages(both: Files) -> None:
    cut = Cut(rows=4000, columns=1000, radius=1, by_rows=True)
    way = {"ranks": 4, "grid": (4, 1), "depth": 3, "exchange": "nonblocking"}
    halos = {
        halo: needed(cut, variant(**way, halo=halo), both).buffers
        for halo in ("packed", "datatype", "elementwise")
    }
    cells = 2 * 2 * 3 * (1000 + 1000 + 2 * 3)
    assert halos["packed"] - halos["datatype"] == cells * 8
    assert halos["elementwise"] - halos["datatype"] >= cells * 100
    in_turns = variant(**way | {"exchange": "blocking"}, halo="elementwise")
    assert needed(cut, in_turns, both).buffers == halos["datatype"]


def test_lines_are_held_as_a_whole(both: Files) -> None:
    cut = Cut(rows=3, columns=2_000_000, radius=1, by_rows=True)
    text = Region(
        path="a",
        name="a",
        rows=3,
        columns=2_000_000,
        dtype="float64",
        encoding="text",
        line_numbers=2_000_000,
        file_bytes=60_000_000,
    )
    read = Files(source=text, kind=format_of("a.npy"), order="C")
    binary = Files(
        source=Region(path="a", name="a", rows=3, columns=2_000_000, dtype="float64"),
        kind=format_of("a.npy"),
        order="C",
    )
    written = Files(source=binary.source, kind=format_of("a.csv"), order="C")
    least = needed(cut, variant(), binary).rank
    assert needed(cut, variant(), read).rank >= least + 2_000_000 * (2 * 8 + 10)
    assert needed(cut, variant(), written).rank >= least + 2_000_000 * 25
    for texts in (read, written):
        assert needed(cut, variant(), texts, "fast").rank > needed(cut, variant(), texts).rank + (16 << 20)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, 500),
        ({"snapshot_every": 7}, 7),
        ({"snapshot_every": 700}, 500),
        ({"until_change": 0.1}, 15),
        ({"until_change": 0.1, "check_every": 1}, 1),
        ({"until_change": 0.1, "check_every": 9, "snapshot_every": 5}, 5),
    ],
)
def test_halos_are_no_deeper_than_sweeps_go(fields: dict[str, Any], expected: int) -> None:
    wanted = Stencil(a="A", output="B", steps=500, **fields, depth=1000)
    assert wanted.stretch == wanted.deep == expected


def test_halos_of_single_numbers_are_one_sweep_deep(here: InProcess, fake: Tilewise) -> None:
    numpy.save(fake.folder / "A.npy", numpy.ones((400, 400)))
    words = ("plan", "stencil", "A.npy", "-o", "C.npy", "--steps", 40, "-n", 2, "--json")
    for more, depth in (
        ((), 25),
        (("--halo", "elementwise"), 1),
        (("--halo", "elementwise", "--depth", 9), 9),
    ):
        shown = here(*words, "plan.json", *more)
        assert shown.returncode == 0, shown.stderr
        assert re.search(rf"depth {depth}\b", shown.stdout)


def test_a_check_counts_both_patches_that_are_always_looked_at() -> None:
    """Swept cell by cell: squares that grow back from the last sweep, at the corner and between blocks."""
    steps, radius, points, cores = 200, 2, 1e9 * 200, 2
    cells = sum((24 + radius * k) ** 2 + (24 + 2 * radius * k) ** 2 for k in range(steps))
    small = proof.patches_share(steps, radius, 1e8, cores)
    check = cells / (0.6e9 * cores)
    assert small == pytest.approx(check / (0.15 + 1e8 / (10e9 * cores) + check), rel=0.02)
    check = proof.patches().share * points / (0.6e9 * cores)
    large = proof.patches_share(steps, radius, points, cores)
    assert large == pytest.approx(check / (0.15 + points / (10e9 * cores) + check))


@pytest.mark.parametrize(
    ("shape", "order", "words"),
    [
        ((3000, 4000), "C", ("-n", 1)),
        ((3000, 4000), "C", ("-n", 2, "--repeat", 2)),
        ((4, 400_000), "F", ("-n", 1)),  # as rows of 4 numbers, each padded to cache lines
        ((4000, 3000), "F", ("-n", 2, "--order", "C", "--snapshot-every", 2)),
        ((3000, 2000), "C", ("-n", 1, "-t", 4, "--kernel", "plain", "--depth", 5)),
    ],
)
def test_memory_is_kept_to(
    tilewise: Tilewise, done: Done, shape: tuple[int, int], order: str, words: tuple[object, ...]
) -> None:
    """Fields of which half would be seen: far larger than what is set aside for MPI and the program."""
    numbers = numpy.random.default_rng(1).standard_normal(shape)
    numpy.save(tilewise.folder / "A.npy", numpy.asfortranarray(numbers) if order == "F" else numbers)
    record = done("A.npy", "-o", "B.npy", "--steps", 5, *words)
    used = record["peak_rss_bytes"]["node_sum"]
    assert record["needed_bytes"] / 2.5 < used <= record["needed_bytes"]


def test_what_does_not_fit_is_refused(tilewise: Tilewise) -> None:
    numpy.save(tilewise.folder / "A.npy", numpy.ones((1500, 2000), "float32"))
    words = ("stencil", "A.npy", "-o", "B.npy", "--steps", 20, "-n", 2, "--memory", "64MiB")
    message = one_message(tilewise(*words), 2)
    assert "of memory on a node, but --memory allows 64.0 MiB" in message
    assert "B.npy" not in tilewise.files()
