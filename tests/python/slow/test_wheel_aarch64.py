"""The wheel for 64-bit ARM on an emulated processor; `make wheel ARGS="--machine aarch64"` builds it.

The front is this machine's and the ranks are the wheel's, with the MPI and the BLAS for that processor.
"""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

import h5py
import numpy
import pytest
import scipy.ndimage
from conftest import Tilewise, environment, mpiexec

ROOT = Path(__file__).resolve().parents[3]
LIBC = Path(os.environ.get("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"))
MPI = ROOT / "build/manylinux/aarch64/packages/lib"
RANKS = (1, 2)
# The emulator has no process_vm_readv, by which MPI copies long messages.
WRAPPER = """#!/bin/sh
exec {qemu} -L {libc} -cpu cortex-a72 -E LD_LIBRARY_PATH={mpi} -E MPIR_CVAR_CH4_CMA_ENABLE=0 {worker} "$@"
"""


@pytest.fixture
def emulated(tmp_path: Path) -> Tilewise:
    """The command whose worker is the wheel's, run by an emulator."""
    qemu = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
    wheels = sorted((ROOT / "dist").glob("tilewise-*_aarch64.whl"), key=os.path.getmtime)
    if not wheels or not MPI.exists():
        pytest.skip('no wheel for aarch64 was built. Try: make wheel ARGS="--machine aarch64"')
    if qemu is None or not (LIBC / "lib/ld-linux-aarch64.so.1").exists():
        pytest.skip("no emulator of aarch64. Try: apt install qemu-user-static libc6-arm64-cross")
    mpiexec()
    package = tmp_path / "package"
    with zipfile.ZipFile(wheels[-1]) as archive:
        archive.extractall(package)
    program = package / "tilewise/bin/tilewise-worker"
    real = program.rename(program.with_name("emulated"))
    program.write_text(WRAPPER.format(qemu=qemu, libc=LIBC, mpi=MPI, worker=real))
    for path in (program, real):
        path.chmod(0o755)
    (tmp_path / "files").mkdir()
    return Tilewise(tmp_path / "files", environment(tmp_path, TILEWISE_WORKER=str(program)))


def test_the_worker_is_one_for_arm(emulated: Tilewise) -> None:
    package = Path(emulated.environment["TILEWISE_WORKER"]).parents[1]
    for program in (package / "bin/emulated", package / "bin/tilewise-start", *package.glob("lib/*.so*")):
        assert program.read_bytes()[18:20] == b"\xb7\x00", program  # EM_AARCH64
    done = emulated("doctor")
    assert "neon" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("ranks", RANKS)
def test_results_are_those_of_numpy(emulated: Tilewise, ranks: int) -> None:
    folder, random = emulated.folder, numpy.random.default_rng(ranks)
    a, b = random.random((53, 41)), random.random((41, 67))
    numpy.save(folder / "A.npy", a)
    numpy.save(folder / "B.npy", b)
    numpy.save(folder / "F.npy", (100 * a).astype(numpy.float32))

    def job(*words: object) -> None:
        done = emulated(*words, "-n", ranks, "--force", "-q", timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def result(name: str) -> numpy.ndarray:
        return numpy.load(folder / name)

    job("multiply", "A.npy", "B.npy", "-o", "C.npy", "--verify", "serial")
    numpy.testing.assert_allclose(result("C.npy"), a @ b, rtol=1e-12)
    for name in ("A.npy", "F.npy"):
        job("transpose", name, "-o", "T.npy")
        numpy.testing.assert_array_equal(result("T.npy"), result(name).T)
        job("stencil", name, "-o", "S.npy", "--steps", 3, "--boundary", "reflect", "--weights", "box3")
        expected = result(name).astype(float)
        for _ in range(3):
            expected = scipy.ndimage.uniform_filter(expected, 3, mode="reflect")
        numpy.testing.assert_allclose(result("S.npy"), expected, rtol=1e-12 if name == "A.npy" else 1e-5)
    job("svd", "A.npy", "-o", "svd", "--verify", "fast")
    u, s, vt = (result(f"svd/{name}.npy") for name in ("U", "s", "Vt"))
    numpy.testing.assert_allclose(s, numpy.linalg.svd(a, compute_uv=False), rtol=1e-12)
    numpy.testing.assert_allclose((u * s.ravel()) @ vt, a, rtol=1e-11, atol=1e-12)
    job("convert", "A.npy", "A.h5:/half", "--dtype", "float16")
    with h5py.File(folder / "A.h5") as file:
        numpy.testing.assert_array_equal(file["half"][()], a.astype(numpy.float16))
    job("convert", "A.npy", "A.txt")
    numpy.testing.assert_array_equal(numpy.loadtxt(folder / "A.txt"), a)
