"""How a command declares its flags: fields of a struct, with all that is said of each in one place.

    steps: Annotated[int, Flag("Number of sweeps over the matrix.", least=0)]    ──▶  --steps N
    a: Annotated[str, Flag("The left matrix.", value=MATRIX, place=True)]        ──▶  A, by its position

Annotations are not evaluated where they stand, so declaring costs nothing. Help, completion, the manual, the
options of the Python functions and the refusals of values are made from what is declared.

Design: docs/design/front.md.
"""

from __future__ import annotations

import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from tilewise.base.errors import UsageError
from tilewise.base.units import nearest

WHAT, HOW, WHERE, SHOW = "What", "How", "Where", "Show"  # headings of a help page, in their order


class Value(NamedTuple):
    """The placeholder that help has for a value, and what completes it.

    `endings` are those of the names of files that fit: "/" means folders, "" any file; none where the word
    is no path. `known` returns words that fit besides.
    """

    name: str
    endings: tuple[str, ...] = ()
    known: Callable[[], tuple[str, ...]] | None = None


FILE, FOLDER, SIZE, NAME = Value("FILE", ("",)), Value("FOLDER", ("/",)), Value("SIZE"), Value("NAME")
TIME, NUMBER, COMMAND = Value("TIME"), Value("N"), Value("COMMAND")
CLUSTER = Value("CLUSTER", (".xml",))
JSON, HTML = Value("FILE", (".json",)), Value("FILE", (".html",))
_USUAL = {bool: Value(""), int: NUMBER, float: Value("X"), str: NAME}


class Flag(NamedTuple):
    """The declaration of a flag, or with `place` of a word that is known by its position.

    The name is that of the field unless `name` is another. `value` is the placeholder, by default N, X or
    NAME. `choices` are the values that it may have; a function finds them for the class that has the field,
    and `known` are those that only other commands have. A number is `least` or more, or more than `above`,
    and `most` or less, or less than `below`. `only`: the algorithms, or kinds of measurement, that have the
    flag; help names them first. `needs`: another flag with an example of a value, without which this one says
    nothing. `excludes`: fields that contradict this one, and why. `applies` says whether a class has the
    flag. `parse` makes the value of a word, given the flag's name for its error. `joined` parts several
    values in one word; `several`: it may be given again, and its words are parsed together. `default` is for
    people, where None stands for a choice that is made later: such a flag also takes `auto`. `stream`: `-` is
    standard output. `common`: the short help page shows it.
    """

    help: str
    group: str = WHAT
    name: str = ""
    short: str = ""
    value: Value | None = None
    choices: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    known: tuple[str, ...] = ()
    least: float | None = None
    above: float = -math.inf
    most: float | None = None
    below: float = math.inf
    only: tuple[str, ...] = ()
    needs: str = ""
    excludes: Mapping[str, str] = {}
    applies: Callable[[Any], bool] | None = None
    parse: Callable[[Any, str], Any] | None = None
    joined: str = ""
    several: bool = False
    default: str = ""
    place: bool = False
    stream: bool = False
    common: bool = False

    def allows(self, number: float) -> bool:
        """Return whether the number is in the range that is declared."""
        enough = self.above < number if self.least is None else self.least <= number
        return enough and (number < self.below if self.most is None else number <= self.most)

    def range_text(self, kind: Any) -> str:
        """Describe the range: `1 or more`, `between 0 and 1`."""
        if self.least is not None:
            if self.most is None:
                return f"{self.least:g} or more"
            return f"{'a whole number ' if kind is int else ''}from {self.least:.15g} to {self.most:.20g}"
        if self.most is not None and self.most < math.inf:
            return f"above {self.above:g} and at most {self.most:g}"
        if self.below < math.inf:
            return f"between {self.above:g} and {self.below:g}"
        return f"more than {self.above:g}"


@dataclass(frozen=True, eq=False)
class Argument:
    """One argument of a command: a flag, or a word by its position. `owner` names the struct that has it."""

    owner: str
    field: str
    kind: Any  # of one word: str, int, float or bool
    several: bool  # a flag that may be given again
    rest: bool  # all positions that are left
    flag: Flag
    default: Any  # inspect.Parameter.empty where it must be given
    choices: tuple[str, ...]
    only: tuple[str, ...]  # the algorithms, or kinds of measurement, that have it; empty where all have
    hidden: bool  # does not apply to this command, which says so when it is given

    @functools.cached_property
    def name(self) -> str:
        """The name in full: `--max-sweeps`, or `A` of a word by its position."""
        if self.flag.place:
            return self.flag.name or self.field.upper()
        return f"--{self.flag.name or self.field.rstrip('_').replace('_', '-')}"

    @property
    def spellings(self) -> list[str]:
        """All names of a flag, the one in full first."""
        return [self.name, self.flag.short] if self.flag.short else [self.name]

    @property
    def help(self) -> str:
        """Help text, behind the names of the algorithms or kinds that have the flag."""
        return f"{', '.join(self.flag.only)}: {self.flag.help}" if self.flag.only else self.flag.help

    @property
    def value(self) -> Value:
        """The placeholder of its value; a switch has none."""
        return self.flag.value or _USUAL[self.kind]

    @property
    def needed(self) -> bool:
        """Return whether it must be given."""
        return self.default is inspect.Parameter.empty and not self.rest

    def given(self, options: Any) -> bool:
        """Return whether `options` have another value than the default."""
        value = getattr(options, self.field)
        return not (value is None or value == self.default)

    def text(self, options: Any) -> str:
        """The flag and its value as a command line has them."""
        value = getattr(options, self.field)
        return self.name if value is True else f"{self.name} {self._word(value)}"

    def check(self, options: Any) -> None:
        """Raise UsageError where the value in `options`, or one of a list, is none that is declared."""
        values = getattr(options, self.field)
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, str) and self.choices and value not in self.choices:
                raise self._no_choice(value, options)
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if number and not self.flag.allows(value):
                said = f"{self.spellings[-1]} {self._word(value)} makes no sense"
                raise UsageError(f"{said}; it must be {self.flag.range_text(type(value))}")

    def _no_choice(self, value: str, options: Any) -> UsageError:
        if value not in self.flag.known:
            known = self.flag.known or self.choices
            near = nearest(value, known)
            return UsageError(
                f"{self.name} {value!r} is unknown; expected one of {', '.join(known)}",
                f"{self.name} {near}" if near else "",
            )
        takes = ", ".join(each for each in self.choices if each != "auto")
        return UsageError(
            f"{self.name} {value} makes no sense with {options.command}: it takes {takes}",
            f"{self.name} {self.choices[0]}",
        )

    def _word(self, value: Any) -> str:
        if isinstance(value, (tuple, list)):
            return ("x" if self.value.name == "PxQ" else ",").join(map(str, value))
        if isinstance(value, float):
            return f"{value:.15g}{'s' if self.flag.value is TIME else ''}"
        return str(value)


class Arguments(NamedTuple):
    """All that a command takes: by place, and by every spelling of a flag."""

    positions: list[Argument]
    flags: dict[str, Argument]
    owners: tuple[str, ...]

    def every(self) -> list[Argument]:
        """All arguments, each once, in the sequence of their declaration."""
        return [*self.positions, *dict.fromkeys(self.flags.values())]

    def shown(self) -> list[Argument]:
        """Arguments that apply, each once."""
        return [each for each in self.every() if not each.hidden]


class Example(NamedTuple):
    """A command line, and what it does in a sentence."""

    line: str
    said: str


def examples_of(doc: str) -> list[Example]:
    """The examples of a docstring: below the line `Examples:`, command lines with a sentence below each."""
    part = inspect.cleandoc(doc).partition("\nExamples:\n")[2]
    lines = [line.strip() for line in part.splitlines() if line.strip()]
    examples: list[Example] = []
    for line in lines:
        if line.startswith("tilewise "):
            examples.append(Example(line, ""))
        else:
            examples[-1] = Example(examples[-1].line, f"{examples[-1].said} {line}".lstrip())
    return examples


def description_of(doc: str) -> str:
    """The first paragraph of a docstring, in one line."""
    return " ".join(doc.split("\n\n", maxsplit=1)[0].split())


def arguments_of(*kinds: type[msgspec.Struct]) -> Arguments:
    """Collect the arguments that structs declare, each owned by the name of its struct."""
    every = [each for kind in kinds for each in declared(kind)]
    places = [each for each in every if each.flag.place]
    flags = {spelt: each for each in every if not each.flag.place for spelt in each.spellings}
    return Arguments(places, flags, tuple(kind.__name__ for kind in kinds))


@functools.lru_cache(maxsize=32)
def declared(kind: type[msgspec.Struct]) -> list[Argument]:
    """Every field of `kind` that is declared as an argument; those of bases first."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    return [
        _argument(kind, name, hint, _default(fields[name]))
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if any(isinstance(each, Flag) for each in typing.get_args(hint))
    ]


def check(options: Any, why: str = "") -> None:
    """Raise UsageError for values, or combinations of them, that the declarations of a struct do not allow.

    `why` is said of flags that do not apply.
    """
    kind: type[msgspec.Struct] = type(options)
    every = {each.field: each for each in declared(kind)}
    given = [each for each in every.values() if each.given(options)]
    for one in given:
        if one.hidden and getattr(options, one.field) not in one.choices:
            raise UsageError(f"{one.text(options)} makes no sense with {options.command}: {why}")
        one.check(options)
        needed = one.flag.needs.partition(" ")[0]
        if needed and needed not in (each.name for each in given):
            raise UsageError(f"{one.text(options)} makes no sense without {needed}", one.flag.needs)
        for field, reason in one.flag.excludes.items():
            if every.get(field) in given:
                said = f"{one.name} and {every[field].name} contradict each other"
                raise UsageError(f"{said}: {reason}" if reason else said)


class Flags(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of a command; making one raises UsageError for what its declarations do not allow."""

    def __post_init__(self) -> None:
        check(self)


def _argument(kind: Any, field: str, hint: Any, default: Any) -> Argument:
    """The argument that a field of the struct `kind` declares."""
    value, flag = typing.get_args(hint)[:2]
    value = _alone(value)
    listed = typing.get_origin(value) is tuple and flag.parse is None
    choices = flag.choices(kind) if callable(flag.choices) else flag.choices
    return Argument(
        owner=kind.__name__,
        field=field,
        kind=str if flag.parse else typing.get_args(value)[0] if listed else value,
        several=(listed and not flag.place) or flag.several,
        rest=listed and flag.place,
        flag=flag,
        default=default,
        choices=choices,
        only=flag.only or getattr(kind, "algorithms_of", {}).get(field, ()),
        hidden=bool(flag.applies and not flag.applies(kind)) or (callable(flag.choices) and not choices),
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return inspect.Parameter.empty
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _alone(kind: Any) -> Any:
    """`int` for `int | None`, other types as they are."""
    kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in typing.get_args(kind) else kind
