"""`python -m tilewise`: the same as the `tilewise` command."""

from __future__ import annotations

import sys

from tilewise.cli import main

if __name__ == "__main__":
    sys.exit(main())
