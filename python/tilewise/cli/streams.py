"""`-` as a matrix: standard input and what goes to standard output are files for the time of a job.

    stdin ──▶ .stdin.….npy ──▶ the job ──▶ .stdout.….npy ──▶ stdout

A file that is standard input, as with `< A.npy`, is linked instead. Ranks read and write at any place of a
file, in parallel, which no pipe allows. Both files lie beside the output, or in the working folder, where all
hosts of a job see them.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

import msgspec

from tilewise.base.declare import Flag, Flags
from tilewise.base.errors import RunError, TilewiseError, UsageError, disk_failure, warning_line
from tilewise.base.owner import new_owner, part_path
from tilewise.base.staging import replace_or_fail
from tilewise.base.streams import pour
from tilewise.files.formats import KIND, InputFlags, parse_format, read_as
from tilewise.files.target import check_folder
from tilewise.launch.record import Record, encode
from tilewise.operations.operation import Operation

_STREAM = "-"
_TO = Flag("Format of standard output, if the output is -.", value=KIND, parse=parse_format)


class StdoutFlags(Flags, frozen=True, kw_only=True):
    """The format of standard output."""

    to: Annotated[str, _TO] = "npy"


class StreamFlags(InputFlags, frozen=True, kw_only=True):
    """The formats of standard input and output."""

    to: Annotated[str, _TO] = "npy"


def flags_of(operation: type[Operation]) -> type[msgspec.Struct]:
    """The flags for the streams that a job of this kind may have."""
    if not operation.operands:
        return StdoutFlags
    return StreamFlags if operation.writes and not operation.several else InputFlags


class Streams:
    """Files in the place of `-`: `stdin` and `stdout` are their paths, empty where there is none."""

    def __init__(self, stdin: str = "", stdout: str = "", fields: Sequence[str] = ()) -> None:
        self._stdin = stdin
        self.stdout = stdout
        self.fields = fields  # of the operation, that are standard input

    @property
    def any(self) -> bool:
        """Return whether any stream is used."""
        return bool(self._stdin or self.stdout)

    @contextlib.contextmanager
    def opened(self, check: Callable[[], None]) -> Iterator[None]:
        """Stores standard input once `check` has returned; nothing is left behind afterwards.

        Errors call the streams by name, also those of `check`.
        """
        try:
            if self._stdin:
                check()
                self._receive()
            yield
        except TilewiseError as error:
            error.message, error.advice = self._named(error.message), self._named(error.advice)
            raise
        finally:
            for path in filter(None, (self._stdin, self.stdout)):
                with contextlib.suppress(OSError):
                    os.unlink(path)

    def send(self) -> None:
        """Writes the result to standard output; RunError where not all of it can be delivered."""
        if not self.stdout:
            return
        sys.stdout.flush()
        with open(self.stdout, "rb") as result:
            try:
                pour(result.fileno(), sys.stdout.fileno())
            except BrokenPipeError:
                what = "standard output was closed before the whole matrix was written"
                raise RunError(what, "-o FILE; tilewise show prints a part of it") from None
            except OSError as error:
                raise disk_failure("the matrix cannot be written to standard output", error) from None

    def with_streams(self, record: Record) -> Record:
        """Return `record` with `-` for each file that stands for a stream."""
        if not self.any:
            return record
        text = encode(record)
        for path in filter(None, (self._stdin, self.stdout)):
            text = text.replace(msgspec.json.encode(path), msgspec.json.encode(_STREAM))
        told: Record = msgspec.json.decode(text, type=Record)
        for sentences in (told.warnings, told.reasons):
            sentences[:] = map(self._named, sentences)
        return told

    def _receive(self) -> None:
        if sys.stdin is None or sys.stdin.isatty():
            what = "standard input is a terminal, but a matrix was expected"
            raise UsageError(what, "cat A.npy | tilewise …")
        folder = os.path.dirname(self._stdin)
        check_folder(folder, "standard input")
        source = sys.stdin.fileno()
        try:
            if path := _whole_file(source):
                os.symlink(path, self._stdin)
                return
            descriptor = os.open(self._stdin, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                pour(source, file.fileno())
        except OSError as error:
            raise disk_failure(f"standard input cannot be stored in {folder}", error) from None

    def _named(self, text: str) -> str:
        for path, name in ((self._stdin, "standard input"), (self.stdout, "standard output")):
            text = text.replace(path, name) if path else text
        return text


def _whole_file(descriptor: int) -> str:
    """The path of the regular file that is open, if nothing of it has been read; else empty."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        same = os.path.samestat(os.stat(path), os.fstat(descriptor)) and os.path.isfile(path)
        unread = same and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        return path if unread and os.access(path, os.R_OK) else ""
    except OSError:
        return ""


def replaced(
    operation: type[Operation], given: dict[str, Any], formats: dict[str, Any]
) -> tuple[dict[str, Any], Streams]:
    """Return the fields given to an operation, with files for `-`; UsageError where `-` cannot be."""
    inputs = [field for field in operation.operands if given.get(field) == _STREAM]
    outputs = [field for field in ("output", "b") if field not in operation.operands]
    result = [field for field in outputs if given.get(field) == _STREAM]
    names = {field: str(given[field]) for field in operation.operands if given.get(field)}
    given = {**given, **read_as(names, formats.get("from_"), any_name=not inputs)}
    if not inputs and not result:
        return given, Streams()
    if len(inputs) > 1:
        raise UsageError("standard input can be read once, but two inputs are -")
    if result and operation.several:
        raise UsageError("standard output cannot hold a folder", "-o FOLDER")
    named = [str(given[field]) for field in outputs if given.get(field)]
    folder = os.getcwd() if result or not named else os.path.dirname(os.path.abspath(named[0]))
    identity = new_owner().identity
    paths = {}
    for fields, name, kind in (
        (inputs, "stdin", formats.get("from_") or "npy"),
        (result, "stdout", formats.get("to", "npy")),
    ):
        ending, colon, member = kind.partition(":")
        path = part_path(os.path.join(folder, name), identity, f"stream.{ending}")
        for field in fields:
            paths[name] = path
            given = {**given, field: f"{path}{colon}{member}"}
    return given, Streams(**paths, fields=inputs)


def write_file(path: str, content: bytes, flag: str = "") -> None:
    """Writes an answer to `path`, `-` is standard output; RunError, and nothing changed, where that fails.

    The error names `flag`, if there is one, before the path.
    """
    if path == "-":
        sys.stdout.write(content.decode())
        return
    replace_or_fail(path, content, f"{flag} {path}".strip())


def warn(warnings: Iterable[str]) -> None:
    """Prints each on standard error, as a line of its own also where an interrupt comes between."""
    for warning in warnings:
        sys.stderr.write(warning_line(warning))
    sys.stderr.flush()


def write_json(path: str, value: Any, flag: str = "", indent: int = 2) -> None:
    """Write a value as indented JSON, as `write_file` does."""
    write_file(path, msgspec.json.format(msgspec.json.encode(value), indent=indent) + b"\n", flag)
