"""`python -m tilewise`: the same as the `tilewise` command."""

from __future__ import annotations

from tilewise.cli import command

if __name__ == "__main__":
    command()
