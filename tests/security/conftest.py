"""What the Python tests share, for tests of what a hostile file, folder or neighbour could do."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PYTHON = Path(__file__).resolve().parents[1] / "python"
sys.path.append(str(PYTHON))

_spec = importlib.util.spec_from_file_location("shared_conftest", PYTHON / "conftest.py")
assert _spec is not None and _spec.loader is not None
_shared = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_shared)
globals().update({name: value for name, value in vars(_shared).items() if not name.startswith("__")})
