"""Makes the README's pictures: hills at dusk, grainy, and what `tilewise stencil` makes of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy
from PIL import Image

FOLDER = Path(__file__).resolve().parent.parent / "docs/pictures"
ROWS, COLUMNS = 240, 400
STEPS = 20


def hills() -> numpy.ndarray[tuple[int, ...], numpy.dtype[numpy.float64]]:
    """Sky, a sun and five ridges, each nearer one darker; shape (rows, columns, 3), from 0 to 1."""
    down, across = numpy.mgrid[0:ROWS, 0:COLUMNS] / ROWS
    height = down[..., None]
    picture = numpy.array([0.25, 0.35, 0.65]) * (1 - height) + numpy.array([1.0, 0.65, 0.35]) * height
    away = numpy.hypot(down - 0.42, across - 1.1)[..., None]
    picture = picture + numpy.array([1.0, 0.9, 0.6]) * numpy.exp(-((away / 0.25) ** 2)) * 0.5
    picture = numpy.where(away < 0.07, numpy.array([1.0, 0.97, 0.85]), picture)
    for ridge in range(5):
        waves = sum(numpy.sin(across * (3 + 5 * k + ridge) + ridge * 2 + k) / (2 + 2 * k) for k in range(5))
        top = 0.5 + 0.1 * ridge + 0.06 * waves
        shade = numpy.array([0.55, 0.4, 0.55]) * (1 - ridge / 5) + numpy.array([0.05, 0.08, 0.12]) * ridge / 5
        picture = numpy.where((down > top)[..., None], shade, picture)
    return numpy.clip(picture, 0, 1)


def main() -> None:
    """Writes before.jpg and after.jpg."""
    FOLDER.mkdir(exist_ok=True)
    grain = numpy.random.default_rng(1).normal(0, 0.13, (ROWS, COLUMNS, 3))
    grainy = numpy.clip(hills() + grain, 0, 1)
    before, after = FOLDER / "before.jpg", FOLDER / "after.jpg"
    Image.fromarray(numpy.rint(255 * grainy).astype("uint8")).save(before, quality=80)
    words = ["stencil", before, "-o", after, "--steps", STEPS, "--boundary", "reflect", "--force", "-q"]
    subprocess.run([sys.executable, "-m", "tilewise", *map(str, words)], check=True)


if __name__ == "__main__":
    main()
