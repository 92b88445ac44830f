"""How a command declares its flags: annotations that stay text until somebody has to read them.

A command's function, or a struct whose fields are flags, says of each `Annotated[int | None, Parameter(…)]`.
Annotations are not evaluated where they stand, so declaring costs nothing.

    by place      a word by its position: A, B; positional-only in a function
    the others    flags
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

WHAT, HOW, WHERE, SHOW = "What", "How", "Where", "Show"  # headings of a help page, in their order


class Value(NamedTuple):
    """What the word of an argument stands for: the name that help has for it, and what completes it.

    `endings` are those of the names of files that fit: "/" means folders, "" any file; none where the word
    is no path. `known` returns words that fit besides.
    """

    name: str
    endings: tuple[str, ...] = ()
    known: Callable[[], tuple[str, ...]] | None = None


FILE, FOLDER, SIZE, NAME = Value("FILE", ("",)), Value("FOLDER", ("/",)), Value("SIZE"), Value("NAME")
TIME = Value("TIME")
CLUSTER = Value("CLUSTER", (".xml",))
JSON = Value("FILE", (".json",))
_USUAL = {bool: Value(""), int: Value("N"), float: Value("X"), str: NAME}


class Parameter(NamedTuple):
    """What is said of an argument.

    `value` is what its word stands for, without it a number or a name. `choices` are the values that it may
    have; a function finds them for the class that has the field, and where that finds none the flag does not
    apply, nor where `applies` says so. `joined` parts several values in one word. `default` is for people,
    where None stands for a choice that is made later: such a flag also takes `auto`. `parse` makes the value
    of a word. `place`: a word by its position. `several`: a flag that may be given again, whose words are
    parsed together. `stream`: `-` is standard output. `common`: one of the few that most people use, which
    the short help page shows.
    """

    name: str | list[str] = ""
    value: Value | None = None
    group: str = WHAT
    help: str = ""
    choices: tuple[str, ...] | Callable[[Any], tuple[str, ...]] = ()
    joined: str = ""
    default: str = ""
    applies: Callable[[Any], bool] | None = None
    parse: Callable[[Any], Any] | None = None
    place: bool = False
    several: bool = False
    stream: bool = False
    common: bool = False

    @property
    def spellings(self) -> list[str]:
        return [self.name] if isinstance(self.name, str) else self.name


@dataclass(frozen=True, eq=False)
class Argument:
    """One argument of a command. `owner` names the class that has it as a field; empty for a function's."""

    owner: str
    field: str
    kind: Any  # of one word: str, int, float or bool
    several: bool  # a flag that may be given again
    rest: bool  # all positions that are left
    parameter: Parameter
    default: Any  # inspect.Parameter.empty where it must be given
    choices: tuple[str, ...]
    hidden: bool  # does not apply to this command, which says so when it is given

    @property
    def value(self) -> Value:
        """What its word stands for; a switch has none."""
        return self.parameter.value or _USUAL[self.kind]

    @property
    def needed(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty and not self.rest


class Arguments(NamedTuple):
    """All that a command takes: by place, and by every spelling of a flag."""

    positions: list[Argument]
    flags: dict[str, Argument]
    classes: Mapping[str, Any]

    def every(self) -> list[Argument]:
        """Each once, in the sequence of their declaration."""
        return [*self.positions, *dict.fromkeys(self.flags.values())]

    def shown(self) -> list[Argument]:
        """The same without those that do not apply."""
        return [each for each in self.every() if not each.hidden]

    def add(self, one: Argument, place: bool = False) -> None:
        """Takes one more, by its `place` where that or its declaration says so."""
        if place or one.parameter.place:
            self.positions.append(one)
        else:
            self.flags.update(dict.fromkeys(one.parameter.spellings, one))


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


def _argument(
    owner: str, field: str, hint: Any, default: Any, kind: Any = None, rest: bool = False
) -> Argument:
    """What `hint` declares, a field of the class `kind` where that is given."""
    value, parameter = typing.get_args(hint)[:2]
    value = _alone(value)
    listed = typing.get_origin(value) is tuple and parameter.parse is None
    choices = parameter.choices(kind) if callable(parameter.choices) else parameter.choices
    return Argument(
        owner=owner,
        field=field,
        kind=str if parameter.parse else typing.get_args(value)[0] if listed else value,
        several=listed or parameter.several,
        rest=rest,
        parameter=parameter,
        default=default,
        choices=choices,
        hidden=bool(parameter.applies and not parameter.applies(kind))
        or (callable(parameter.choices) and not choices),
    )


@functools.lru_cache(maxsize=32)
def arguments_of(function: Callable[..., Any]) -> Arguments:
    """What `function` declares; a parameter named `*` is a class whose fields are flags."""
    classes: dict[str, Any] = {}
    arguments = Arguments([], {}, classes)
    hints = typing.get_type_hints(function, include_extras=True)
    for name, slot in inspect.signature(function).parameters.items():
        kind, parameter = typing.get_args(hints[name])[:2]
        if parameter.name == "*":
            classes[name] = kind
            for field, hint in typing.get_type_hints(kind, include_extras=True).items():
                arguments.add(_argument(name, field, hint, getattr(kind, field)))
        else:
            rest = slot.kind is slot.VAR_POSITIONAL
            place = rest or slot.kind is slot.POSITIONAL_ONLY
            arguments.add(_argument("", name, hints[name], slot.default, rest=rest), place)
    return arguments


def arguments_of_structs(*kinds: type[msgspec.Struct]) -> Arguments:
    """What the fields of several structs declare, each owned by the name of its struct."""
    arguments = Arguments([], {}, {kind.__name__: kind for kind in kinds})
    for kind in kinds:
        for each in declared(kind):
            arguments.add(each)
    return arguments


@functools.lru_cache(maxsize=32)
def declared(kind: type[msgspec.Struct]) -> list[Argument]:
    """Every field of `kind` that is declared as an argument; those of bases first."""
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    return [
        _argument(kind.__name__, name, hint, _default(fields[name]), kind)
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if name in fields and any(isinstance(each, Parameter) for each in typing.get_args(hint))
    ]


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.required:
        return inspect.Parameter.empty
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _alone(kind: Any) -> Any:
    """`int` for `int | None`, other types as they are."""
    kinds = [each for each in typing.get_args(kind) if each is not type(None)]
    return kinds[0] if len(kinds) == 1 and type(None) in typing.get_args(kind) else kind
