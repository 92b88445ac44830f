"""The `tilewise` command: the table of its commands, the way to their modules, and errors, printed once.

Each command has a page: what it says and declares, of which help, completion and the manual are made. Imports
next to nothing at first, so that help is instant and ranks that only become a worker cost little.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tilewise.base.errors import Interrupted, RunError, TilewiseError, UsageError, advice_for
from tilewise.operations import OPERATIONS

if TYPE_CHECKING:
    from tilewise.base.declare import Arguments, Example
    from tilewise.launch.join import Join

# Adding a command that is no job is one module in this folder, with `main(words, joined)`, and one line here.
COMMANDS = {
    **OPERATIONS,
    "info": "describe a matrix file:     tilewise info A.npy",
    "show": "print some elements:        tilewise show A.npy 0:3 0:5",
    "measure": "measure this machine:       tilewise measure",
    "plan": "show what a job would do:   tilewise plan multiply A.npy B.npy -o C.npy",
    "study": "run a series of jobs:       tilewise study run quick",
    "report": "make an HTML report:        tilewise report results/quick -o report.html",
    "doctor": "check the installation",
}
JOBS = tuple(OPERATIONS)
SUBCOMMANDS = {
    "measure": {"compare": "compare two measurements"},
    "study": {
        "list": "list the built-in studies",
        "show": "show what a study runs, or its results",
        "run": "run a study, and show its tables",
        "compare": "compare two results",
        "export": "write launches to CSV or Parquet",
    },
}
# The struct whose fields are what a command takes, and its module; jobs have several.
_DECLARED = {
    "info": ("cli.info", "InfoFlags"),
    "show": ("cli.show", "ShowFlags"),
    "measure": ("lab.measurement.request", "MeasureRequest"),
    "measure compare": ("lab.measurement.request", "CompareFlags"),
    "plan": ("cli.plan", "PlanFlags"),
    "study": ("cli.study", "StudyFlags"),
    "study list": ("cli.study", "StudyListFlags"),
    "study show": ("cli.study", "StudyShowFlags"),
    "study run": ("cli.study_run", "StudyRunFlags"),
    "study compare": ("cli.study", "StudyCompareFlags"),
    "study export": ("cli.study", "StudyExportFlags"),
    "report": ("cli.report", "ReportFlags"),
    "doctor": ("cli.doctor", "DoctorFlags"),
    "--install-completion": ("cli.completion", "InstallFlags"),
    "--show-completion": ("cli.completion", "ScriptFlags"),
}


class Page:
    """One command: its name behind `tilewise`, its docstring, what it takes."""

    def __init__(self, name: str, doc: str, arguments: Arguments) -> None:
        self.name, self.doc, self.arguments = name, doc, arguments

    @property
    def description(self) -> str:
        """The first paragraph of the docstring."""
        from tilewise.base.declare import description_of

        return description_of(self.doc)

    @property
    def examples(self) -> list[Example]:
        """Command lines worth seeing."""
        from tilewise.base.declare import examples_of

        return examples_of(self.doc)


def overview() -> str:
    """The first help page."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in COMMANDS.items()]
    return "\n".join(
        [
            "tilewise works on dense matrices in files, in parallel with MPI, and verifies its results.",
            "",
            "usage: tilewise COMMAND …",
            "",
            *lines,
            "",
            "tilewise COMMAND --help shows more. Also: tilewise --version, tilewise --install-completion.",
        ]
    )


def names() -> list[str]:
    """Names of all pages, as the overview has them, subcommands behind their command."""
    commands = (*COMMANDS, "--install-completion", "--show-completion")
    return [each for command in commands for each in (command, *subcommands(command))]


def page_of(name: str) -> Page:
    """The page called `name`, one of `names()`."""
    from tilewise.base.declare import arguments_of

    if name in JOBS:
        from tilewise.cli.jobs import declaring

        kinds = declaring(name)
    else:
        module, kind = _DECLARED[name]
        kinds = (getattr(importlib.import_module(f"tilewise.{module}"), kind),)
    return Page(name, kinds[0].__doc__ or "", arguments_of(*kinds))


def subcommands(name: str) -> list[str]:
    """Names of the pages below that of the command `name`."""
    return [f"{name} {each}" for each in SUBCOMMANDS.get(name, {})]


def command() -> NoReturn:
    """The `tilewise` command: `main` on the process's own words, then the end of the process.

    All files are closed by then and all output is flushed; taking the interpreter apart, object by object,
    would be a tenth of a small job.
    """
    gc.disable()  # until all is imported, which leaves nothing to collect
    code = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody listens any more; the exit code still tells
            stream.flush()
    os._exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code (`CONTRIBUTING.md` and the reference list them)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for as long as we live
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 must not cost the result
    from tilewise.launch import join

    joined = join.detect(os.environ)
    if joined is not None and joined.rank > 0:
        return join.follow(joined, _is_job(words))
    try:
        return _run(words, joined)
    finally:
        if (signals := sys.modules.get("tilewise.launch.signals")) is not None:
            signals.run_kept()


def _run(words: list[str], joined: Join | None) -> int:
    """Run the command that `words` name, print its error, and return the exit code."""
    try:
        code = _dispatch(words, joined)
        sys.stdout.flush()
        return code
    except TilewiseError as error:
        _say(error)
        return error.exit_code
    except KeyboardInterrupt:
        job = sys.modules.get("tilewise.launch.signals")
        _say(Interrupted(f"interrupted; {job.written() if job else 'nothing was written'}"))
        return Interrupted.exit_code
    except (BrokenPipeError, MemoryError, OSError) as error:
        return _system(error)
    except Exception as error:
        if (interrupted := _interruption(error)) is not None:
            _say(interrupted)
            return interrupted.exit_code
        # A fault of ours: still one message, the traceback for whoever asks.
        if "-v" in words or "--verbose" in words:
            raise
        _say(
            RunError(
                f"an internal error: {type(error).__name__}: {error}",
                "run again with -v and report the output",
            )
        )
        return RunError.exit_code


def _interruption(error: BaseException | None) -> Interrupted | None:
    """The signal behind `error`: one that comes while a class is being made, as in an import, is wrapped."""
    while error is not None and not isinstance(error, Interrupted):
        error = error.__cause__ or error.__context__
    return error


def _system(error: Exception) -> int:
    """Print an error of the system that no caller expected; return the exit code."""
    if isinstance(error, BrokenPipeError):
        # The reader has gone, as `| head` does. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    if isinstance(error, OSError):
        if error.errno == errno.ENOENT and not error.filename and _has_lost_its_folder():
            lost = UsageError("the working folder has been removed", "cd to a folder that exists")
            _say(lost)
            return lost.exit_code
        where = f"{error.filename}: " if error.filename else ""
        _say(RunError(f"{where}{error.strerror or error}", advice_for(error.errno or 0)))
    else:
        _say(
            RunError(
                "the tilewise process ran out of memory", "close other programs, or give the job more memory"
            )
        )
    return RunError.exit_code


def _has_lost_its_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _dispatch(words: list[str], joined: Join | None) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(overview())
        return 0
    if words[0] == "--version":
        from tilewise import __version__

        print(f"tilewise {__version__}")
        return 0
    name = words[0]
    if name == "--complete":
        from tilewise.cli import complete

        return complete.main(words[1:])
    scripts = name in ("--install-completion", "--show-completion")
    if not scripts and name not in COMMANDS:
        raise UsageError(f"{name!r} is not a command; choose from {', '.join(COMMANDS)}", _nearest(name))
    if {"-h", "--help"} & set(words):
        from tilewise.cli.help import help_was_printed

        if help_was_printed(words):
            return 0
    if scripts:
        from tilewise.cli import completion

        return completion.main(name, words[1:])
    if name in JOBS:
        from tilewise.cli import jobs

        gc.enable()
        return jobs.main(name, words[1:], joined)
    module = importlib.import_module(f"tilewise.cli.{name}")
    gc.enable()
    code: int = module.main(words[1:], joined)
    return code


def _is_job(words: list[str]) -> bool:
    """Return whether `words` start ranks, as a help page of a job does not."""
    return bool(words) and words[0] in JOBS and not {"-h", "--help"} & set(words)


def _nearest(name: str) -> str:
    from tilewise.base.units import nearest

    near = nearest(name, COMMANDS)
    return f"tilewise {near}" if near else ""


def _say(error: TilewiseError) -> None:
    try:
        sys.stdout.flush()
        print(error.text(), file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody listens any more; the exit code still tells
