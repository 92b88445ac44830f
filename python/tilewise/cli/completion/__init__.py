"""`tilewise --install-completion` and `--show-completion`: scripts by which a shell completes our words."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from tilewise.base.declare import HOW, WHAT, Parameter
from tilewise.base.errors import UsageError, disk_failure
from tilewise.base.staging import replace_or_fail
from tilewise.cli.parse import parse

SHELLS = ("bash", "zsh", "fish")
MARK = "Written by `tilewise --install-completion`"  # in a line of each script: it may be replaced


def install_request(
    shell: Annotated[
        str | None,
        Parameter(name="SHELL", choices=SHELLS, group=WHAT, help="The shell.", default="that of $SHELL"),
    ] = None,
    /,
    *,
    force: Annotated[
        bool, Parameter(name="--force", group=HOW, help="Replace a file that tilewise did not write.")
    ] = False,
) -> tuple[str | None, bool]:
    """Install a script that completes commands, flags, names and files on TAB.

    Examples:
        tilewise --install-completion
            For the shell that $SHELL names.
        tilewise --install-completion zsh
            For zsh, whatever $SHELL is.
    """
    return shell, force


def show_request(
    shell: Annotated[str, Parameter(name="SHELL", choices=SHELLS, group=WHAT, help="The shell.")], /
) -> str:
    """Print the completion script of a shell.

    Examples:
        tilewise --show-completion bash
            The script for bash.
    """
    return shell


def main(name: str, words: list[str]) -> int:
    """Runs `name`, one of the two; returns the exit code."""
    if name == "--show-completion":
        shell = parse(name, show_request, words)
        if shell is not None:
            sys.stdout.write(script(_known(shell)))
        return 0
    asked = parse(name, install_request, words)
    if asked is not None:
        shell, force = asked
        _install(_known(shell or os.path.basename(os.environ.get("SHELL", ""))), force)
    return 0


def script(shell: str) -> str:
    """The script for `shell`, one of SHELLS."""
    from tilewise.cli.completion import bash, fish, zsh
    from tilewise.cli.completion.offers import commands

    writer = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}[shell]
    return writer(commands(), MARK)


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
