"""Jobs on the command line: words in, progress, messages of the launcher and the closing table out."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from tilewise.base.declare import JSON, SHOW, Flag, Flags
from tilewise.base.errors import Interrupted, RunError, TilewiseError, UsageError, VerificationError, clean
from tilewise.base.units import plural
from tilewise.cli.parse import parse_fields
from tilewise.cli.streams import Streams, flags_of, replaced, warn, write_file
from tilewise.engine.request import Listener, Request
from tilewise.lab.report.progress import progress
from tilewise.launch import causes
from tilewise.launch.record import Record, encode
from tilewise.operations import options_of

if TYPE_CHECKING:
    from tilewise.launch.join import Join

_KEPT = 400  # lines of chatter that are shown at the end


class Shown(Flags, frozen=True, kw_only=True):
    """The flags of every job that say what is printed, and where."""

    json: Annotated[
        str | None,
        Flag("File for the record; - for standard output.", SHOW, value=JSON, stream=True, common=True),
    ] = None
    quiet: Annotated[bool, Flag("Print errors only.", SHOW, short="-q", excludes={"verbose": ""})] = False
    verbose: Annotated[bool, Flag("Print more details.", SHOW, short="-v")] = False


class Asked(NamedTuple):
    """A job as the command line asks for it: the request to the engine, and what is shown."""

    request: Request
    shown: Shown
    streams: Streams
    more: list[Any]


def declaring(name: str) -> tuple[type[msgspec.Struct], ...]:
    """The structs whose fields are what the job called `name` may be given."""
    return options_of(name), Request, Shown, flags_of(options_of(name))


def asked_of(name: str, words: list[str], *more: type[Flags]) -> Asked:
    """The job called `name` that `words` ask for, and `more` flags; UsageError for senseless ones."""
    values = parse_fields(name, (*declaring(name), *more), words)
    shown = Shown(**values[2])
    given, streams = replaced(options_of(name), values[0], values[3])
    if streams.stdout and shown.json == "-":
        raise UsageError("--json - and -o - both need standard output", "--json FILE")
    # What the record calls - is known when the stream has been written.
    record = None if shown.json == "-" or streams.any else shown.json
    line = (
        "" if streams.any else shlex.join(["tilewise", name, *(word for word in words if word != "--resume")])
    )
    request = Request(operation=options_of(name)(**given), record=record, line=line, **values[1])
    return Asked(request, shown, streams, [kind(**each) for kind, each in zip(more, values[4:], strict=True)])


def main(name: str, words: list[str], joined: Join | None) -> int:
    """Run the job called `name` that `words` ask for; return the exit code.

    With `joined` this is rank 0 of ranks that exist already.
    """
    begin = time.perf_counter()
    from tilewise.engine.session import session

    with session(joined, begin, ending=True) as opened:
        asked = asked_of(name, words)
        shown = asked.shown
        listener = _Terminal(shown, joined is not None)
        try:
            with asked.streams.opened(lambda: _foresee(asked)):
                record = asked.streams.with_streams(opened.run(asked.request, listener))
                asked.streams.send()
                if asked.streams.any and shown.json not in (None, "-"):
                    write_file(str(shown.json), encode(record), "--json")
        except VerificationError as error:
            listener.close()
            if error.record is not None:
                _print_record(error.record, shown)
            raise
        finally:
            listener.close()
        try:
            _tell(record, listener, shown, joined is not None, not asked.streams.stdout)
        except (BrokenPipeError, Interrupted):
            raise
        except (TilewiseError, OSError) as lost:
            reason = lost.message if isinstance(lost, TilewiseError) else lost.strerror
            raise RunError(
                f"{asked.request.operation.output or name} is complete, but its summary was lost: {reason}",
                "check where standard output goes",
            ) from None
    return 0


def _foresee(asked: Asked) -> None:
    """Refuses what can be refused before standard input is read."""
    from tilewise.engine.prepare import foresee

    foresee(asked.request, asked.streams.fields, asked.shown.json)


class _Terminal(Listener):
    """Shows progress on a terminal, and of a launcher's lines at once what a person waits for."""

    def __init__(self, shown: Shown, joined: bool) -> None:
        self._shown = shown
        # Open MPI gives ranks a terminal of its own, wherever their output goes.
        self._bar = progress(wanted=not shown.quiet and not joined)
        self.progress = self._bar.wanted
        self.update = self._bar.update  # type: ignore[method-assign]
        self.foreseen = self._bar.foresee  # type: ignore[method-assign]
        self.close = self._bar.close
        self.held: list[str] = []  # lines for the end

    def starting(self, command: str) -> None:
        if self._shown.verbose:
            print(f"tilewise: starting {command}", file=sys.stderr, flush=True)

    def running(self) -> None:
        if not self._shown.quiet and self._shown.json != "-":
            import tilewise.lab.report.explain  # noqa: F401
            from tilewise.lab.report.terminal import get_ready

            get_ready()

    def retrying(self, error: RunError, left: int) -> None:
        if not self._shown.quiet:
            more = f"; {plural(left, 'attempt')} left" if left else ""
            said = f"tilewise: {clean(error.message)}\ntilewise: retrying{more}"
            print(said, file=sys.stderr, flush=True)

    def measured(self, seconds: float) -> None:
        if not self._shown.quiet:
            print(
                f"tilewise: measured this machine, once, in {seconds:.1f} s: later plans use it",
                file=sys.stderr,
                flush=True,
            )

    def warning(self, line: str) -> None:
        if not self._shown.quiet:
            warn([line])

    def chatter(self, line: str) -> None:
        if self._shown.verbose or causes.is_waiting(line):
            if not self._shown.quiet:
                print(line, file=sys.stderr, flush=True)
        elif len(self.held) < _KEPT:
            self.held.append(line)


def _tell(record: Record, listener: _Terminal, shown: Shown, plain: bool, table: bool) -> None:
    _print_record(record, shown)
    if shown.quiet:
        return
    for line in listener.held:
        print(line, file=sys.stderr)
    warn(record.warnings)
    if shown.json != "-" and table:
        from tilewise.lab.report.explain import explain
        from tilewise.lab.report.terminal import show

        show(explain(record), plain)


def _print_record(record: Record, shown: Shown) -> None:
    if shown.json == "-":
        sys.stdout.write(encode(record).decode())
        sys.stdout.flush()
