"""The completion script for zsh: a function for each command, which tells `_arguments` what it declares."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilewise.cli.completion.offers import Command, Flag, Offer

_END = """
# Loaded by compinit this file is the function itself; read by a shell, it says what it completes.
if [[ $funcstack[1] == _tilewise ]]; then
    _tilewise "$@"
else
    compdef _tilewise tilewise
fi
"""


def script(commands: list[Command], mark: str) -> str:
    """The whole script; `mark` says who wrote it."""
    lines = [
        "#compdef tilewise",
        f"# What TAB completes behind `tilewise` in zsh. {mark}; write it again after an update.",
    ]
    for command in commands:
        if not command.planned:  # has what the job has, and what `plan` gives it
            lines += ["", *_function(command, commands)]
    return "\n".join([*lines, _END])


def _function(command: Command, commands: list[Command]) -> Iterator[str]:
    below = command.below(commands)
    specs = [_flag(flag) for flag in command.flags]
    for place, offer in enumerate(command.positions, 1):
        at = "*" if command.rest and place == len(command.positions) else f"{place}"
        action = "{_describe -t commands command below}" if below and place == 1 else _action(offer)
        specs.append(_quoted(f"{at}: :{action}"))
    yield f"{_named(command.name)}() {{"
    if below:
        yield "    if ((CURRENT > 2)); then"
        yield "        case $words[2] in"
        for each in below:
            last = each.name.rpartition(" ")[2]
            call = f"{_named(last)} {_flag(each.flags[-1])}" if each.planned else _named(each.name)
            yield f"        {last}) shift words; ((CURRENT--)); {call}; return ;;"
        yield "        esac"
        yield "    fi"
        texts = {each.name.rpartition(" ")[2]: each.text for each in below if not each.name.startswith("-")}
        yield "    local -a below=("
        for word in dict.fromkeys((*command.positions[0].words, *texts)):
            yield f"        {_quoted(f'{word}:{texts[word]}' if word in texts else word)}"
        yield "    )"
    yield '    _arguments -S "$@"' + "".join(f" \\\n        {spec}" for spec in specs)
    yield "}"


def _named(name: str) -> str:
    return re.sub(r"\W+", "_", f"_tilewise {name}".strip())


def _flag(flag: Flag) -> str:
    """What `_arguments` is told of one flag, with all its spellings."""
    text = "[" + re.sub(r"([][:\\])", r"\\\1", flag.text) + "]"
    several = "*" if flag.several else ""
    spelt = flag.spellings
    if flag.offer is not None:
        text += f":{flag.value}:{_action(flag.offer)}"
        spelt = [
            f"{each}=" if each.startswith("--") else f"{each}+" for each in spelt
        ]  # --flag=value, -fvalue
    if len(spelt) == 1:
        return _quoted(f"{several}{spelt[0]}{text}")
    others = several or "(" + " ".join(flag.spellings) + ")"
    return f"{_quoted(others)}{{{','.join(spelt)}}}{_quoted(text)}"


def _action(offer: Offer) -> str:
    """How `_arguments` finds what `offer` has."""
    words = " ".join(offer.words)
    if offer.joined and offer.words:
        between = r"-n 2 -s \:" if offer.joined == ":" else f"-s {offer.joined}"
        return f"_sequence {between} compadd - {words}"
    patterns = [f"*{each}" for each in offer.endings if each != "/"]
    # One alone between parentheses would qualify the files, not name them.
    pattern = f"({'|'.join(patterns)})" if len(patterns) > 1 else "".join(patterns)
    files = f"_files -g '{pattern}'" if pattern else "_files -/"
    if offer.words and offer.endings:
        return rf' _alternative "names\:name\:({words})" "files\:file\:{files}"'
    return f"({words})" if offer.words else files if offer.endings else " "


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
