"""The commands of these pages run as they stand: every block fenced as `sh`, in order, in one folder.

Of a page that names a section, only the blocks of that section run here.
"""

import re
from pathlib import Path

import pytest
import shell
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "how-to/compress-a-picture.md",
    "how-to/large-hdf5-file.md",
    "how-to/measure-a-machine.md",
    "how-to/on-a-cluster.md#Run a study",
    "how-to/plan-for-another-machine.md",
    "how-to/read-a-report.md",
    "how-to/repeat-the-reports.md",
    "how-to/smooth-an-image.md",
    "how-to/teach-a-course.md",
    "reference/svd.md",
    "tutorial/first-report.md",
    "tutorial/tour.md",
)
ELSEWHERE = {
    "how-to/on-a-cluster.md": "cluster/test_slurm_page.py",
    "how-to/simulate-a-cluster.md": "python/job/test_simulated.py",
    "how-to/troubleshooting.md": "docs/test_troubleshooting.py",
}


def test_every_page_with_commands_is_run_by_a_test() -> None:
    docs = ROOT / "docs"
    with_commands = {
        str(path.relative_to(docs))
        for path in docs.glob("**/*.md")
        if re.search(r"^```sh$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert with_commands == {*(page.partition("#")[0] for page in PAGES), *ELSEWHERE}
    assert [test for test in ELSEWHERE.values() if not (ROOT / "tests" / test).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_run(page: str, tmp_path: Path) -> None:
    name, _, heading = page.partition("#")
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    if heading:
        text = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    Image.open(ROOT / "docs/pictures/before.jpg").save(tmp_path / "photo.png")
    for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        shell.run(block, tmp_path)
        made = "\n".join(line for line in block.splitlines() if not line.startswith("tilewise plan"))
        for output in re.findall(r"-o (\S+)", made):
            assert (tmp_path / output).stat().st_size > 0
