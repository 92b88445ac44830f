"""`make demo`: real matrices multiplied from file to file, pictures of the results, and where the time went.

The inputs ship with matplotlib: an elevation model of the Jacksboro fault and a photograph of Grace Hopper.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
from numpy.typing import NDArray

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib import cbook

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "demo-output"
TILEWISE = Path(sys.executable).with_name("tilewise")
BLUR = 12  # pixels on either side that are averaged
SPEED_SIZE = 4096

Matrix = NDArray[np.float64]


def heading(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def tilewise(*words: str) -> None:
    """Shows the command as one would type it, and runs it in the demo's folder."""
    print(f"$ tilewise {' '.join(words)}", flush=True)
    if subprocess.run([TILEWISE, *words], cwd=OUT, check=False).returncode != 0:
        sys.exit("The demo ends here: the command above failed.")


def smoothing(size: int) -> Matrix:
    """A banded matrix whose product with a picture replaces each row by the mean of its neighbours."""
    rows, columns = np.indices((size, size))
    band: Matrix = (np.abs(rows - columns) <= BLUR).astype(np.float64)
    band /= band.sum(axis=1, keepdims=True)
    return band


def sample(name: str) -> str:
    """The path of a file that matplotlib ships."""
    return str(cbook.get_sample_data(name, asfileobj=False))


def terrain() -> None:
    heading("1. An elevation model: how the terrain's columns vary together (DEMᵀ · DEM)")
    with np.load(sample("jacksboro_fault_dem.npz")) as archive:
        elevation = archive["elevation"].astype(np.float64)
    centred = elevation - elevation.mean(axis=0)
    np.save(OUT / "dem.npy", centred)
    tilewise("multiply", "dem.npy", "dem.npy", "--transpose-a", "-o", "covariance.npy", "-q")
    covariance = np.load(OUT / "covariance.npy") / (len(centred) - 1)
    difference = np.abs(covariance - np.cov(elevation, rowvar=False)).max() / np.abs(covariance).max()
    print(f"numpy.cov says the same, to {difference:.1e}")
    picture(
        "terrain.png", ("elevation [m]", elevation, "gist_earth"), ("covariance [m²]", covariance, "magma")
    )


def photograph() -> None:
    heading("2. A photograph, blurred by a banded matrix from both sides (S · photo · T)")
    photo = plt.imread(sample("grace_hopper.jpg")).astype(np.float64) @ (0.299, 0.587, 0.114)
    rows, columns = photo.shape
    for name, matrix in (("photo", photo), ("S", smoothing(rows)), ("T", smoothing(columns).T)):
        np.save(OUT / f"{name}.npy", matrix)
    tilewise("multiply", "S.npy", "photo.npy", "-o", "half-blurred.npy", "-q")
    tilewise("multiply", "half-blurred.npy", "T.npy", "-o", "blurred.npy", "-q")
    picture("photo.png", ("photo", photo, "gray"), ("blurred", np.load(OUT / "blurred.npy"), "gray"))


def speed() -> None:
    heading(f"3. For the speed: two {SPEED_SIZE} × {SPEED_SIZE} matrices, verified, and where the time went")
    for name, seed in (("A", "1"), ("B", "2")):
        shape = f"{SPEED_SIZE}x{SPEED_SIZE}"
        tilewise("generate", "-o", f"{name}.npy", "--shape", shape, "--seed", seed, "-q")
    words = ["-o", "C.npy", "--verify", "fast", "--json", "record.json", "--trace", "trace.json"]
    tilewise("multiply", "A.npy", "B.npy", *words)


def picture(name: str, *panels: tuple[str, Matrix, str]) -> None:
    """Matrices beside each other, as one PNG."""
    figure, axes = plt.subplots(1, len(panels), figsize=(5 * len(panels), 4.5), layout="constrained")
    for axis, (title, matrix, colours) in zip(axes, panels, strict=True):
        shown = axis.imshow(matrix, cmap=colours)
        axis.set_title(title)
        axis.set_axis_off()
        if colours != "gray":
            figure.colorbar(shown, ax=axis, shrink=0.8)
    figure.savefig(OUT / name, dpi=110)
    plt.close(figure)
    print(f"-> {(OUT / name).relative_to(ROOT)}")


def main() -> None:
    if OUT.exists():
        shutil.rmtree(OUT)
    OUT.mkdir()
    terrain()
    photograph()
    speed()
    heading("All of it is in demo-output/")
    print("The record of the last product is record.json; trace.json opens in https://ui.perfetto.dev")


if __name__ == "__main__":
    main()
