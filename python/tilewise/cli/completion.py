"""`tilewise --install-completion` and `--show-completion`: scripts by which a shell completes our words.

On TAB each of them asks `tilewise --complete LINE`, and hands on what that prints: see `complete.py`.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated

from tilewise.base.declare import HOW, Flag, Flags
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.staging import replace_or_fail
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
    """Run `name`, one of the two; return the exit code."""
    if name == "--show-completion":
        sys.stdout.write(script(parse(name, ScriptFlags, words).shell))
    else:
        wanted = parse(name, InstallFlags, words)
        _install(_known(wanted.shell or os.path.basename(os.environ.get("SHELL", ""))), wanted.force)
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
    said = f"there is no completion for {shell!r}" if shell else "$SHELL does not name a shell"
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
    """Return what the user does next."""
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
