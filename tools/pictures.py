"""Makes the pictures of README and how-to pages with tilewise itself: `python tools/pictures.py [NAME…]`.

The timeline and the report show measured times: make them on a machine that is otherwise idle.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tilewise.base import programs

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import cbook

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/pictures"
SWEPT = 4096  # rows and columns of the kept sweeps that are shown
HILLS = 240, 400  # rows, columns
COMPONENTS = (5, 20, 80)
PLATE = 256  # rows and columns
HEAT_STEPS = (0, 200, 1000, 4000)
GAP, CAPTION = 8, 26  # pixels

Matrix = NDArray[numpy.float64]


def tilewise(folder: Path, *words: object) -> None:
    """Runs a command in `folder`, quietly; its own message is the last line where it fails."""
    subprocess.run(programs.command([*map(str, words)]), cwd=folder, check=True)


def hills() -> Matrix:
    """Sky, a sun and five ridges, each nearer one darker; shape (rows, columns, 3), from 0 to 1."""
    down, across = numpy.mgrid[0 : HILLS[0], 0 : HILLS[1]] / HILLS[0]
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


def smooth(work: Path) -> None:
    """before.jpg and after.jpg: grainy hills, and the same after 20 sweeps."""
    grain = numpy.random.default_rng(1).normal(0, 0.13, (*HILLS, 3))
    grainy = numpy.clip(hills() + grain, 0, 1)
    before, after = FOLDER / "before.jpg", FOLDER / "after.jpg"
    Image.fromarray(numpy.rint(255 * grainy).astype("uint8")).save(before, quality=80)
    tilewise(work, "stencil", before, "-o", after, "--steps", 20, "--boundary", "reflect", "--force", "-q")


def compressed(work: Path) -> None:
    """compressed.jpg: a photograph made of its largest 5, 20 and 80 singular values, and as it was."""
    photo = Image.open(str(cbook.get_sample_data("grace_hopper.jpg", asfileobj=False))).convert("L")
    photo = photo.resize((photo.width // 2, photo.height // 2), Image.Resampling.LANCZOS)
    photo.save(work / "photo.png")
    panels = []
    for count in COMPONENTS:
        tilewise(work, "svd", "photo.png", "-o", "svd/", "--components", count, "--scaled", "--force", "-q")
        tilewise(work, "multiply", "svd/US.npy", "svd/Vt.npy", "-o", "back.npy", "--force", "-q")
        back = numpy.clip(numpy.rint(numpy.load(work / "back.npy")), 0, 255).astype("uint8")
        share = count * (photo.width + photo.height) / (photo.width * photo.height)
        panels.append((f"rank {count}: {share:.0%} of the numbers", Image.fromarray(back)))
    strip([*panels, (f"original: rank {min(photo.size)}", photo)]).save(FOLDER / "compressed.jpg", quality=85)


def heat(work: Path) -> None:
    """heat.png: a plate with hot bars and a cold rim, as it is and after more and more sweeps."""
    plate = numpy.zeros((PLATE, PLATE), "float32")
    for bar in range(4):
        plate[40 + 48 * bar : 60 + 48 * bar, 30 : 90 + 40 * bar] = 1
    plate[60:204, 195:210] = 1
    numpy.save(work / "plate.npy", plate)
    numpy.save(work / "T.npy", plate)
    panels, done = [], 0
    for steps in HEAT_STEPS:
        if steps > done:
            tilewise(
                work,
                "stencil",
                "T.npy",
                "-o",
                "T1.npy",
                "--steps",
                steps - done,
                "--boundary",
                "fixed",
                "-q",
                "--force",
            )
            shutil.move(work / "T1.npy", work / "T.npy")
            done = steps
        colours = mpl.colormaps["inferno"](numpy.load(work / "T.npy"))
        panels.append((f"{steps} steps", Image.fromarray((255 * colours[..., :3]).astype("uint8"))))
    strip(panels).quantize(128).save(FOLDER / "heat.png", optimize=True)


def timeline(work: Path) -> None:
    """timeline.png: one product from texts that rank 0 reads, and from binary files that all ranks read."""
    for name, seed in (("A", 1), ("B", 2)):
        tilewise(work, "generate", "-o", f"{name}.npy", "--shape", "1024x1024", "--seed", seed, "-q")
        tilewise(work, "convert", f"{name}.npy", "-o", f"{name}.txt", "-q")
    how = ("-n", 4, "-t", 1, "--algorithm", "cannon", "--exchange", "nonblocking", "--no-verify", "-q")
    for files, io in (("txt", "root"), ("npy", "collective")):
        words = (f"A.{files}", f"B.{files}", "-o", f"C.{files}", "--io", io, "--trace", f"{files}.json")
        tilewise(work, "multiply", *words, *how)
    tilewise(work, "report", "txt.json", "npy.json", "--plots", "plots", "-q")
    keep(work / "plots/timeline.png", "timeline.png")


def scaling(work: Path) -> None:
    """scaling.png: sweeps of the kept benchmark by ranks, below what memory and cores allow."""
    kept = json.loads((ROOT / "bench/results/amd-epyc/stencil.json").read_text())
    seconds: dict[tuple[int, int], float] = {}  # of the fastest way, by sweeps in a pass and ranks
    copy = math.inf  # seconds for which a copy of the matrix lasts
    for row in kept["rows"]:
        way = re.fullmatch(rf"stencil-way-{SWEPT}-(\d+)-.*-(\d+)", row["name"])
        if way:
            ranks, depth = map(int, way.groups())
            seconds[depth, ranks] = min(seconds.get((depth, ranks), math.inf), row["medians"]["seconds"])
        elif row["name"] == f"stencil-copy-star5-{SWEPT}":
            copy = row["medians"]["copy"]
    counts = sorted({ranks for _, ranks in seconds})
    speed = {key: 200 * SWEPT**2 / value / 1e9 for key, value in seconds.items()}
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for depth, words in ((40, "40 sweeps in a pass over memory"), (1, "1 sweep in a pass")):
        points = [(count, speed[depth, count]) for count in counts if (depth, count) in speed]
        axes.plot(*zip(*points, strict=True), "o-", label=words)
    cores = kept["environment"]["cores"]
    linear = [speed[40, 1] * min(count, cores) for count in counts]
    axes.plot(counts, linear, "k:", label=f"bound: {cores} cores, perfect speedup")
    axes.axhline(SWEPT**2 / copy / 1e9, color="k", linestyle="--", label="bound: memory, 1 sweep in a pass")
    axes.set(xlabel="ranks", ylabel="billion points a second", yscale="log", xticks=counts)
    axes.set_title(f"200 sweeps over float32, {SWEPT}², on {cores} cores", loc="left", fontsize=11)
    axes.set_yticks([5, 10, 20, 40], ["5", "10", "20", "40"])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    figure.savefig(work / "scaling.png", dpi=120)
    keep(work / "scaling.png", "scaling.png")


def page(work: Path) -> None:
    """report.png: the top of the page that `tilewise report` makes of a job's record."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("report.png needs Chromium. Try: apt install chromium")
    for name, seed in (("A", 1), ("B", 2)):
        tilewise(work, "generate", "-o", f"{name}.npy", "--shape", "2048x2048", "--seed", seed, "-q")
    how = ("-n", 2, "-t", 1, "--verify", "fast", "-q", "--json", "record.json")
    tilewise(work, "multiply", "A.npy", "B.npy", "-o", "C.npy", *how)
    tilewise(work, "report", "record.json", "-o", "report.html", "-q")
    window = ("--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=960,820")
    shot = (f"--user-data-dir={work / 'browser'}", f"--screenshot={work / 'page.png'}")
    subprocess.run(
        [chromium, *window, *shot, (work / "report.html").as_uri()], check=True, capture_output=True
    )
    Image.open(work / "page.png").convert("RGB").quantize(64).save(FOLDER / "report.png", optimize=True)


def strip(panels: list[tuple[str, Image.Image]]) -> Image.Image:
    """Pictures of one height in a row, each with its caption above."""
    font = ImageFont.truetype(str(Path(mpl.get_data_path(), "fonts/ttf/DejaVuSans.ttf")), 13)
    width = sum(image.width for _, image in panels) + GAP * (len(panels) - 1)
    whole = Image.new("RGB", (width, panels[0][1].height + CAPTION), "white")
    draw, left = ImageDraw.Draw(whole), 0
    for caption, image in panels:
        draw.text((left, 4), caption, fill="black", font=font)
        whole.paste(image, (left, CAPTION))
        left += image.width + GAP
    return whole


def keep(source: Path, name: str) -> None:
    """Takes a figure over, in as many colours as a plot needs."""
    Image.open(source).convert("RGB").quantize(64).save(FOLDER / name, optimize=True)


PICTURES: dict[str, Callable[[Path], None]] = {
    "smooth": smooth,
    "compressed": compressed,
    "heat": heat,
    "timeline": timeline,
    "scaling": scaling,
    "report": page,
}


def main() -> None:
    names = sys.argv[1:] or list(PICTURES)
    if unknown := [name for name in names if name not in PICTURES]:
        sys.exit(f"There is no picture {unknown[0]!r}; there are {', '.join(PICTURES)}")
    for name in names:
        print(name, flush=True)
        with tempfile.TemporaryDirectory() as folder:
            PICTURES[name](Path(folder))


if __name__ == "__main__":
    main()
