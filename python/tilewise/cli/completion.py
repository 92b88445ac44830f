"""Completion on TAB: scripts for three shells, and what they ask, `tilewise --complete LINE`.

    tilewise multiply A.npy --kernel=b      ──▶  --kernel=blas
    tilewise measure ping --levels core,s   ──▶  core,sibling   list

The answer has a line for each word that may stand at the end of LINE, with what it does behind a TAB; or
`file`, `folder` (which ends with a slash), or `list`, where more may follow in the same word.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

from tilewise.base.declare import HOW, Argument, Flag, Flags, Value
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.staging import replace_or_fail
from tilewise.cli.commands import COMMANDS, JOBS, names, page_of, subcommands
from tilewise.cli.parse import parse

SHELLS = ("bash", "zsh", "fish")
MARK = "Written by `tilewise --install-completion`"  # in a line of each script: it may be replaced
# Bash cuts words at = and : too, and replaces only what stands behind the last of them.
_BASH = r"""
_tilewise() {
    local line=${COMP_LINE:0:COMP_POINT} word text kept='' sign
    local last=${line##*[[:blank:]]}
    for sign in = :; do
        word=${last%"${last##*"$sign"}"}
        [[ $COMP_WORDBREAKS == *$sign* && ${#word} -gt ${#kept} ]] && kept=$word
    done
    COMPREPLY=()
    while IFS=$'\t' read -r word text; do
        case $text in
        file | folder) compopt -o filenames ;;
        list) compopt -o nospace ;;
        esac
        COMPREPLY+=("${word#"$kept"}")
    done < <("${COMP_WORDS[0]}" --complete "$line" 2>/dev/null)
}
complete -F _tilewise tilewise
"""
_ZSH = r"""
_tilewise() {
    local word text
    local -a words_said files folders lists
    while IFS=$'\t' read -r word text; do
        case $text in
        file) files+=("$word") ;;
        folder) folders+=("${word%/}") ;;
        list) lists+=("$word") ;;
        *) words_said+=("${word//:/\\:}${text:+:$text}") ;;
        esac
    done < <($words[1] --complete "${(j: :)words[1,CURRENT-1]} $PREFIX" 2>/dev/null)
    (($#words_said)) && _describe -t words word words_said
    (($#lists)) && compadd -S '' -a lists
    (($#files)) && compadd -f -a files
    (($#folders)) && compadd -f -S / -q -a folders
}
# Loaded by compinit this file is the function itself; read by a shell, it says what it completes.
if [[ $funcstack[1] == _tilewise ]]; then
    _tilewise "$@"
else
    compdef _tilewise tilewise
fi
"""
_FISH = r"""
function __tilewise_words
    set -l line (commandline -cp | string collect)
    set -l command (commandline -po)[1]
    $command --complete "$line" 2>/dev/null | string replace -r '\t(file|folder|list)$' ''
end
complete -c tilewise -f -a '(__tilewise_words)'
"""


class InstallFlags(Flags, frozen=True, kw_only=True):
    """Install a script that completes commands, flags, names and files on TAB.

    Examples:
        tilewise --install-completion
            For the shell that $SHELL names.
        tilewise --install-completion zsh
            For zsh, whatever $SHELL is.
    """

    shell: Annotated[str | None, Flag("The shell.", choices=SHELLS, default="that of $SHELL", place=True)] = (
        None
    )
    force: Annotated[bool, Flag("Replace a file that tilewise did not write.", HOW)] = False


class ScriptFlags(Flags, frozen=True, kw_only=True):
    """Print the completion script of a shell.

    Examples:
        tilewise --show-completion bash
            The script for bash.
    """

    shell: Annotated[str, Flag("The shell.", choices=SHELLS, place=True)]


def main(name: str, words: list[str]) -> int:
    """Run `name`, one of the three; return the exit code."""
    if name == "--complete":
        for word, text in offers(" ".join(words)):
            print(f"{word}\t{text}" if text else word)
    elif name == "--show-completion":
        shown = parse(name, ScriptFlags, words)
        if shown is not None:
            sys.stdout.write(script(shown.shell))
    else:
        wanted = parse(name, InstallFlags, words)
        if wanted is not None:
            shell = wanted.shell or os.path.basename(os.environ.get("SHELL", ""))
            _install(_known(shell), wanted.force)
    return 0


def script(shell: str) -> str:
    """The script for `shell`, one of SHELLS."""
    first = "#compdef tilewise\n" if shell == "zsh" else ""
    asks = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell]
    return f"{first}# What TAB completes behind `tilewise` in {shell}. {MARK}.\n{asks}"


def place_of(shell: str) -> str:
    """The file in which `shell` looks for the completion of tilewise, in the user's own folders."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    if shell == "bash":
        own = os.environ.get("BASH_COMPLETION_USER_DIR") or os.path.join(data, "bash-completion")
        return os.path.join(own, "completions", "tilewise")
    if shell == "zsh":
        return os.path.join(data, "zsh", "site-functions", "_tilewise")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    return os.path.join(config, "fish", "completions", "tilewise.fish")


def _known(shell: str) -> str:
    if shell in SHELLS:
        return shell
    said = f"there is no completion for {shell!r}" if shell else "$SHELL does not say which shell is meant"
    raise UsageError(f"{said}; there is one for {', '.join(SHELLS)}", "tilewise --install-completion bash")


def _install(shell: str, force: bool) -> None:
    """Writes the script and says what to do next. UsageError for a file that somebody else wrote."""
    path = place_of(shell)
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path) and not force and not _ours(path):
            raise UsageError(
                f"{path} exists and was not written by tilewise, so it is not replaced",
                f"tilewise --install-completion {shell} --force",
            )
    except OSError as error:
        raise disk_failure(f"{path} cannot be written", error) from None
    replace_or_fail(path, script(shell).encode())
    print(f"wrote {path}\n{_next(shell, path)}")


def _ours(path: str) -> bool:
    with open(path, "rb") as file:
        return MARK.encode() in file.read(512)


def _next(shell: str, path: str) -> str:
    """What is left to do."""
    if shell == "bash":
        return (
            "Open a new shell. If TAB still completes nothing there, bash-completion is not installed:\n"
            f"install that, or add this line to ~/.bashrc:\n\n    . {path}"
        )
    if shell == "zsh":
        return (
            "Add this line to ~/.zshrc, before the line with compinit, and open a new shell:\n\n"
            f"    fpath=({os.path.dirname(path)} $fpath)\n\n"
            "If ~/.zshrc has no such line, add this one, too:\n\n    autoload -Uz compinit && compinit"
        )
    return "Open a new shell."


HELP = {"--help": "Print help.", "-h": "Print help on one screen."}
_TOP = {
    **HELP,
    "--version": "Print the version.",
    "--install-completion": "Complete words on TAB.",
    "--show-completion": "Print the script of a shell.",
}


class _Place:
    """Where a line has come to: its command, the flag whose value is next, and the place of that word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.command, self.number = "", 1
        self.flag: Argument | None = None
        self.only_positions = False
        self._known = {*names(), *(f"plan {job}" for job in JOBS)}
        self.arguments: list[Argument] = []
        for word in words:
            self._pass(word)

    def flags(self) -> dict[str, Argument]:
        """The flags of its command, by every spelling."""
        places = self.positions()
        return {spelt: each for each in self.arguments if each not in places for spelt in each.spellings}

    def positions(self) -> list[Argument]:
        """What its command takes by place."""
        return [each for each in self.arguments if not each.name.startswith("-")]

    def _pass(self, word: str) -> None:
        if self.flag is not None:
            self.flag = None
        elif self.only_positions or not word.startswith("-") or word == "-" or not self.command:
            longer = f"{self.command} {word}".strip()
            if self.number == 1 and longer in self._known:
                self.command = longer
                self.arguments = page_of(longer.removeprefix("plan ")).arguments.shown()
            else:
                self.number += 1
        elif word == "--":
            self.only_positions = True
        else:
            flag = self.flags().get(word)
            self.flag = flag if flag is not None and flag.kind is not bool else None


def offers(line: str) -> Iterator[tuple[str, str]]:
    """Each word that may stand at the end of `line`, whole, with what is said of it."""
    *before, current = _split(line)
    place, kept = _Place(before[1:]), ""
    if place.flag is None and not place.only_positions and current.startswith("-"):
        spelt, equals, value = current.partition("=")
        if not (equals and spelt.startswith("--")):
            yield from ((each, text) for each, text in _flags(place).items() if each.startswith(current))
            return
        place.flag = place.flags().get(spelt)
        if place.flag is None:
            return
        kept, current = f"{spelt}=", value
    if place.flag is None and place.number == 1:
        yield from ((each, text) for each, text in _commands(place).items() if each.startswith(current))
    one = place.flag or _position(place)
    if one is not None:
        yield from ((kept + word, said) for word, said in _values(one, current))


def _split(line: str) -> list[str]:
    """The words of a line as a shell reads them; the last one, which may be empty, is not finished yet."""
    for quote in ("", "'", '"'):
        try:
            words = shlex.split(f"{line}{quote}")
        except ValueError:  # a quote, or what a backslash stands before, is still to come
            continue
        return [*words, ""] if not quote and (line[-1:].isspace() or not words) else words
    return [*line.split(" ")]


def _flags(place: _Place) -> dict[str, str]:
    if not place.command:
        return _TOP
    said = {spelt: _first_sentence(each.help) for spelt, each in place.flags().items()}
    if place.command.startswith("plan "):
        every = page_of("plan").arguments.flags["--all"]
        said[every.name] = _first_sentence(every.help)
    return HELP | said


def _commands(place: _Place) -> dict[str, str]:
    """Commands, or subcommands of one, with what they do."""
    if not place.command:
        return {name: said.partition(":")[0] for name, said in COMMANDS.items()}
    below = {
        name.rpartition(" ")[2]: _first_sentence(page_of(name).description)
        for name in subcommands(place.command)
    }
    if place.command == "plan":
        below |= {name: said.partition(":")[0] for name, said in COMMANDS.items() if name in JOBS}
    return below


def _position(place: _Place) -> Argument | None:
    positions = place.positions()
    if place.number <= len(positions):
        return positions[place.number - 1]
    return positions[-1] if positions and positions[-1].rest else None


def _values(one: Argument, current: str) -> Iterator[tuple[str, str]]:
    """Words and files that the value of an argument may be, of those that begin with `current`."""
    words = one.choices or (one.value.known() if one.value.known else ())
    joined = one.flag.joined
    kept, _, start = current.rpartition(joined) if joined else ("", "", current)
    kept += joined if kept else ""
    for word in words:
        if word.startswith(start):
            yield kept + word, "list" if joined else ""
    if one.value.endings:
        yield from _paths(current, one.value)


def _paths(typed: str, value: Value) -> Iterator[tuple[str, str]]:
    """Folders, and files with an ending that fits."""
    folder, slash, start = typed.rpartition("/")
    try:
        there = sorted(os.scandir(os.path.expanduser(folder + slash) or "."), key=lambda each: each.name)
    except OSError:
        return
    for each in there:
        if each.name.startswith(start) and (start or not each.name.startswith(".")):
            if each.is_dir():
                yield f"{folder}{slash}{each.name}/", "folder"
            elif each.name.endswith(tuple(ending for ending in value.endings if ending != "/")):
                yield f"{folder}{slash}{each.name}", "file"


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")
