"""The completion script for fish: a line for each command and flag, and functions that walk the words."""

from __future__ import annotations

from collections.abc import Iterator

from tilewise.cli.completion.offers import Command, Flag, Offer

_WALK = r"""
# Prints the command that the line names, and the place of the next word if it is not a flag.
function __tilewise_walk
    set -l words (commandline -opc) (commandline -ct)
    set -e words[1] words[-1]
    set -l command ''
    set -l place 1
    set -l valued
    set -l flag 0
    set -l only 0
    for word in $words
        if test $flag = 1
            set flag 0
        else if test $only = 1; or not string match -q -- '-?*' $word; or test -z "$command"
            set -l longer (string trim -- "$command $word")
            if test $place = 1; and contains -- $longer $__tilewise_commands
                set command $longer
            else
                set place (math $place + 1)
            end
        else if test $word = --
            set only 1
        else if contains -- "$(string replace -r '^plan ' '' -- $command) $word" $__tilewise_valued
            set flag 1
        end
    end
    echo $command
    echo $place
end

# Whether the cursor is in the command $argv[1], or in one that starts with `plan` and goes on with it.
function __tilewise_in
    set -l found (__tilewise_walk)
    contains -- "$argv[1]" "$found[1]" (string replace -r '^plan ' '' -- $found[1])
end

# Whether it is there, at the place $argv[2], or behind it where $argv[3] is given.
function __tilewise_at
    __tilewise_in $argv[1]; or return
    set -l found (__tilewise_walk)
    test $found[2] = $argv[2]; or begin
        set -q argv[3]; and test $found[2] -gt $argv[2]
    end
end

# The value that is being written, without its flag and the quote that opens it.
function __tilewise_value
    commandline -ct | string replace -r -- '^--[^=]*=' '' | string replace -r '^["\']' ''
end

# One more of the names $argv[2..], behind those that are there with $argv[1] between them.
function __tilewise_several
    set -l before (string match -r -- "^.*$argv[1]" (__tilewise_value))
    printf "%s\n" "$before"$argv[2..]
end

# Folders, and files whose names end as $argv says.
function __tilewise_files
    set -l value (__tilewise_value)
    for path in (__fish_complete_path $value | string replace -r '\t.*' '')
        if string match -q -- '*/' $path
            echo $path
            continue
        end
        for ending in $argv
            string match -q -- "*$ending" $path; and echo $path; and break
        end
    end
end
"""


def script(commands: list[Command], mark: str) -> str:
    """The whole script; `mark` says who wrote it."""
    return "\n".join(
        [
            f"# What TAB completes behind `tilewise` in fish. {mark}; write it again after an update.",
            *_tables(commands),
            _WALK,
            "complete -c tilewise -f",
            *(line for command in commands for line in _command(command, commands)),
            "",
        ]
    )


def _tables(commands: list[Command]) -> Iterator[str]:
    """The names of all commands, and each flag with a value behind the name of its command."""
    yield "set -g __tilewise_commands " + " ".join(_quoted(each.name) for each in commands if each.name)
    for command in commands:
        valued = [
            _quoted(f"{command.name} {spelt}")
            for flag in command.flags
            if flag.offer is not None and not command.planned
            for spelt in flag.spellings
        ]
        if valued:
            yield f"set -ga __tilewise_valued {' '.join(valued)}"


def _command(command: Command, commands: list[Command]) -> Iterator[str]:
    below = {each.name.rpartition(" ")[2]: each.text for each in command.below(commands)}
    inside = f"__tilewise_in {_word(command.name)}"
    for flag in command.flags[-1:] if command.planned else command.flags:
        yield f"complete -c tilewise -n {_quoted(inside)} {_flag(flag)}"
    for place, offer in enumerate(() if command.planned else command.positions, 1):
        more = " more" if command.rest and place == len(command.positions) else ""
        at = f"complete -c tilewise -n {_quoted(f'__tilewise_at {_word(command.name)} {place}{more}')}"
        # Those that are commands come with what they do.
        plain = offer._replace(words=tuple(each for each in offer.words if place > 1 or each not in below))
        if plain:
            yield f"{at} -a {_quoted(_arguments(plain))}"
        for word, text in below.items() if place == 1 else ():
            if not word.startswith("-"):
                yield f"{at} -a {_quoted(word)} -d {_quoted(text)}"


def _flag(flag: Flag) -> str:
    spelt = [f"-l {each[2:]}" if each.startswith("--") else f"-s {each[1:]}" for each in flag.spellings]
    value = "" if flag.offer is None else f" -x -a {_quoted(_arguments(flag.offer))}" if flag.offer else " -x"
    return f"{' '.join(spelt)}{value} -d {_quoted(flag.text)}"


def _arguments(offer: Offer) -> str:
    """What fish evaluates to find what `offer` has."""
    words = " ".join(map(_word, offer.words))
    if offer.joined and offer.words:
        return f"(__tilewise_several {_word(offer.joined)} {words})"
    endings = " ".join(map(_word, offer.endings))
    return f"{words} (__tilewise_files {endings})".lstrip() if offer.endings else words


def _word(text: str) -> str:
    return text if text and all(letter.isalnum() or letter in "._/,:-" for letter in text) else _quoted(text)


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
