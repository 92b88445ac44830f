"""What the Python tests share: the command as a child, with the real worker or one that only pretends."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis
import numpy
import pytest

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parents[1] / "python"
FAKE = HERE / "fake_worker.py"

if importlib.util.find_spec("tilewise") is None:  # not installed: the front works from its sources
    sys.path.insert(0, str(SOURCES))

InProcess = Callable[..., "subprocess.CompletedProcess[str]"]
Done = Callable[..., dict[str, Any]]
# A busy machine may take long for an example, and what a run finds, the next one must find, too.
hypothesis.settings.register_profile(
    "suite",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")

_TRAPS = (
    *("OPENBLAS_", "OMP_", "PMI_", "PMIX_", "OMPI_", "PRTE_", "MPIR_CVAR_", "HYDR", "TILEWISE_"),
    *("SLURM_", "SBATCH_", "SALLOC_", "PBS_", "LSB_", "JOB_ID"),  # tests may themselves run in a batch job
)

for _name in [name for name in os.environ if name.startswith("OPENBLAS_")]:
    del os.environ[_name]  # which a plan that a test makes by itself would heed, too

# The kernels of another processor, for the command alone: tools/check_processors.py sets these.
_PROCESSOR = {
    name: os.environ[asked]
    for name, asked in (
        ("OPENBLAS_CORETYPE", "TILEWISE_TEST_CORETYPE"),
        ("TILEWISE_KERNELS", "TILEWISE_TEST_KERNELS"),
    )
    if os.environ.get(asked)
}


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Ours without what would change a run: BLAS settings, outer jobs, a stored profile."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_TRAPS)}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    alike = {"TILEWISE_NO_LEARN": "1"}  # one run is planned as another
    return {
        **kept,
        **alike,
        **_PROCESSOR,
        "PYTHONPATH": path,
        "XDG_CACHE_HOME": str(tmp_path / ".cache"),
        **more,
    }


def path_without(program: str, folder: Path) -> str:
    """PATH as if `program` were not installed; `folder` takes what stands in for the folders that have it."""
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    for i, entry in enumerate(entries):
        if os.access(os.path.join(entry, program), os.X_OK):
            entries[i] = str(folder / str(i))
            os.makedirs(entries[i])
            for name in os.listdir(entry):
                if name != program:
                    os.symlink(os.path.join(os.path.abspath(entry), name), os.path.join(entries[i], name))
    return os.pathsep.join(entries)


class Tilewise:
    """The command, run in `folder`. `environment` may be changed by a test."""

    def __init__(self, folder: Path, told: dict[str, str]) -> None:
        self.folder = folder
        self.environment = told

    def __call__(
        self, *words: object, how: str = "", before: Sequence[object] = (), **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Runs `tilewise words…`; `how` is what a fake worker does, `before` stands before it."""
        return self.run(self.command(*words, before=before), how=how, **options)

    def run(
        self, words: Sequence[object], how: str = "", timeout: float = 150, **options: Any
    ) -> subprocess.CompletedProcess[Any]:
        """Runs any command in the folder."""
        return subprocess.run(
            list(map(str, words)), timeout=timeout, check=False, **self._place(how, options)
        )

    def start(
        self, *words: object, how: str = "", before: Sequence[object] = (), **options: Any
    ) -> subprocess.Popen[Any]:
        """Starts `tilewise words…`, and does not wait."""
        return subprocess.Popen(self.command(*words, before=before), **self._place(how, options))

    def _place(self, how: str, options: dict[str, Any]) -> dict[str, Any]:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return {"cwd": self.folder, "env": {**self.environment, "FAKE": how}, **streams, **options}

    def command(self, *words: object, before: Sequence[object] = ()) -> list[str]:
        """The words that start it."""
        return [*map(str, before), sys.executable, "-m", "tilewise", *map(str, words)]

    def files(self) -> set[str]:
        """Names in the folder, hidden ones too, but not the cache."""
        return {path.name for path in self.folder.iterdir()} - {".cache"}


def mpiexec() -> str:
    """The launcher of the mpich package; the test is skipped where there is none."""
    path = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    if not os.access(path, os.X_OK):
        pytest.skip("the mpich package is not installed beside this Python")
    return path


def wait_for(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Waits until `condition` gives something true, and returns it; `seconds` are the end of all patience."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")


def one_message(result: subprocess.CompletedProcess[str], code: int) -> str:
    """Checks that a command ended with `code` and exactly one message on stderr; returns that message."""
    assert result.returncode == code, result.stderr
    lines = result.stderr.splitlines()
    assert lines and lines[0].startswith("tilewise: "), result.stderr
    assert all(line.startswith("  try: ") for line in lines[1:]) and len(lines) <= 2, result.stderr
    return result.stderr


class _WithoutChild(Tilewise):
    """The same for a module that says `WITHOUT_CHILD = True`: its many jobs need no interpreter each."""

    def __init__(self, command: Tilewise, request: pytest.FixtureRequest) -> None:
        super().__init__(command.folder, command.environment)
        self._request = request

    def __call__(
        self, *words: object, how: str = "", before: Sequence[object] = (), timeout: float = 150
    ) -> subprocess.CompletedProcess[str]:
        assert not how and not before
        capture = "capsys" if "capsys" in self._request.fixturenames else "capfd"  # not both
        with pytest.MonkeyPatch.context() as patch:
            return _inside(self, patch, self._request.getfixturevalue(capture))(*words)


@pytest.fixture
def here(fake: Tilewise, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    """The same as `fake` without a child: for the many requests that end before anything is started."""
    return _inside(fake, monkeypatch, capsys)


@pytest.fixture
def inside(
    tilewise: Tilewise, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcess:
    """The same as `tilewise` without an interpreter for each run: for tests of many small jobs."""
    return _inside(tilewise, monkeypatch, capsys)


def _inside(
    command: Tilewise, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> InProcess:
    monkeypatch.chdir(command.folder)
    for key in os.environ:
        if key not in command.environment:
            monkeypatch.delenv(key)
    for key, value in command.environment.items():
        monkeypatch.setenv(key, value)

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        from tilewise.cli import main

        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return subprocess.CompletedProcess(words, code, said.out, said.err)

    return run


@pytest.fixture
def done(inside: InProcess, request: pytest.FixtureRequest) -> Done:
    """Runs the module's `JOB` (a command, and flags for all its runs) to its end; returns the record."""
    command, *flags = request.module.JOB

    def run(*words: object) -> dict[str, Any]:
        ended = inside(command, *words, *flags, "-q", "--json", "-")
        assert ended.returncode == 0, ended.stderr
        record: dict[str, Any] = json.loads(ended.stdout)
        return record

    return run


@pytest.fixture
def fake(tmp_path: Path) -> Tilewise:
    """The command with a worker that only pretends, in a folder with A.npy (6×4) and B.npy (4×3)."""
    numpy.save(tmp_path / "A.npy", numpy.arange(24.0).reshape(6, 4))
    numpy.save(tmp_path / "B.npy", numpy.arange(12.0).reshape(4, 3))
    return Tilewise(tmp_path, environment(tmp_path, TILEWISE_WORKER=str(FAKE)))


@pytest.fixture
def tilewise(tmp_path: Path, request: pytest.FixtureRequest) -> Tilewise:
    """The command with the installed worker, in an empty folder; skipped where there is no worker."""
    from tilewise.launch import worker

    if worker.find() is None:
        pytest.skip("the worker is not built")
    named = {key: os.environ[key] for key in ("TILEWISE_WORKER",) if key in os.environ}
    command = Tilewise(tmp_path, environment(tmp_path, **named))
    return _WithoutChild(command, request) if getattr(request.module, "WITHOUT_CHILD", False) else command


@pytest.fixture
def processes(fake: Tilewise) -> Iterator[Callable[[], list[int]]]:
    """Pids of fake workers that were started and still live; none may be left when the test ends."""
    import psutil

    log = fake.folder / "processes.log"
    fake.environment["FAKE_LOG"] = str(log)

    def living() -> list[int]:
        if not log.exists():
            return []
        pids = [json.loads(line)["pid"] for line in log.read_text().splitlines()]
        found = []
        for pid in pids:
            try:
                process = psutil.Process(pid)
                ours = any("fake_worker" in word for word in process.cmdline())
                if ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(pid)
            except psutil.Error:
                continue
        return found

    yield living
    left = living()
    for pid in left:
        psutil.Process(pid).kill()
    assert not left


@pytest.fixture
def mount(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Path]]:
    """Mounts a small file system; skipped where that is not allowed."""
    made: list[Path] = []

    def _mount(*words: str) -> Path:
        folder = tmp_path_factory.mktemp("mount")
        done = subprocess.run(["mount", *words, str(folder)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        made.append(folder)
        return folder

    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    yield _mount
    for folder in made:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.fixture
def inputs(tilewise: Tilewise) -> Tilewise:
    """The real command in a folder with A.npy (31×17) and B.npy (17×23)."""
    from oracle import matrix, save

    save(tilewise.folder, matrix((31, 17), seed=1), matrix((17, 23), seed=2))
    return tilewise
