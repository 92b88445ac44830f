"""Runs all programs in full: calls fail, processes are struck, leftovers are damaged, files are converted.

python tests/torture/run.py                       all of it, many hours; results in build/torture/*.json
python tests/torture/run.py sweep|kills|resumed|flips|damaged|formats OPTIONS   one, as its --help says
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = ("sweep", "kills", "resumed", "flips", "damaged", "formats")
RESULTS = Path("build/torture")
PAST = "--io uncached:positioned"
WHOLE = [
    ["sweep", "--io", "all", "--ranks", "1,2,3", "--json", "sweep.json"],
    ["kills", "--count", "400", "--json", "kills.json"],
    ["kills", "--count", "200", "--moment", "start", "--within", "0.12", "--json", "start.json"],
    ["kills", "--count", "200", "--moment", "part", "--json", "part.json"],
    ["kills", "--count", "200", "--moment", "named", "--within", "0.005", "--json", "named.json"],
    ["sweep", "--commands", "stencil", "--options=--checkpoint 0.000001s", "--json", "checkpoints.json"],
    ["sweep", "--commands", "multiply,transpose,stencil,svd", "--size=streamed", "--json", "whole.json"],
    ["sweep", "--commands", "multiply,transpose", "--size", "streamed", "--resumed", "--json", "again.json"],
    ["sweep", "--commands", "multiply", "--size=streamed", f"--options={PAST}", "--json", "direct.json"],
    ["resumed", "--kills", "200", "--json", "resumed.json"],
    ["flips", "--count", "100", "--json", "flips.json"],
    ["damaged", "--kills", "300", "--json", "damaged.json"],
    ["formats", "--files", "5000", "--refused", "300", "--json", "formats.json"],
]


def main(words: list[str]) -> int:
    """The worst exit status of all that was run."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    wanted = [words] if words else [[*each[:-1], str(RESULTS / each[-1])] for each in WHOLE]
    if any(each[0] not in PROGRAMS for each in wanted):
        raise SystemExit(__doc__)
    return max(
        subprocess.run([sys.executable, HERE / f"{each[0]}.py", *each[1:]], check=False).returncode
        for each in wanted
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
