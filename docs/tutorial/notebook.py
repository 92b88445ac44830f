# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # tilewise in a notebook
#
# Ten minutes with your own arrays: measure this machine, multiply and decompose arrays, work on files
# that are larger than the memory you want to spend, and run a study with its plots.
#
# Each call starts its own processes (ranks), waits for them, and returns. Your kernel loads no MPI,
# and nothing needs to be configured.
#
# This page is also [a notebook](notebook.py): open it in Jupyter with
# [jupytext](https://jupytext.readthedocs.io), or as cells in an editor such as VS Code or Spyder.

# %%
import numpy
import tilewise

rng = numpy.random.default_rng(1)
a, b = rng.random((1500, 1200)), rng.random((1200, 900))

# %% [markdown]
# ## How fast is this machine?
#
# `tilewise.measure` measures messages between ranks, files, memory and arithmetic. Here it measures
# the arithmetic alone, and briefly: products of two sizes on one and on two threads. `no_store=True`
# keeps the result out of this machine's profile, which later plans use. For a real measurement, omit
# it and the limits.

# %%
tilewise.measure(
    "compute", sizes=[256, 512], threads=[1, 2], dtypes="float64", launches=1, seconds=0.1, no_store=True
)

# %% [markdown]
# A mark beside a figure points to a note below the table. Often it reports that other programs were
# busy at that time.
#
# ## Multiply arrays
#
# Arrays go in, an array comes out, and tilewise has verified it.

# %%
product = tilewise.multiply(a, b)
numpy.allclose(product, a @ b)

# %% [markdown]
# While a call runs, a line below the cell shows its progress, and vanishes at the end:
# `compute: 42%, 3 s, 14 %/s, 4 s left`. To stop a call, interrupt the kernel: you get a
# `KeyboardInterrupt` as soon as all ranks are gone.
#
# Inside `tilewise.records()` each call also stores its record: the choices of the plan, the times, and
# how the result was verified. Here it is Freivalds' check: the product times a random vector is
# compared with `a` times (`b` times that vector).

# %%
with tilewise.records() as done:
    tilewise.multiply(a, b, ranks=2, threads=1)
done[0]

# %% [markdown]
# You chose two ranks here; without `ranks=2`, tilewise chooses. `tilewise.plan` shows what it would do
# and why, without running it.

# %%
tilewise.plan("multiply", a, b)

# %% [markdown]
# Invalid requests are refused at once, with a message and often with advice. The message
# uses the flags of the command line: `--transpose-a` is `transpose_a=True` here.

# %% tags=["raises-exception"]
tilewise.multiply(a, a[:, :900])

# %% [markdown]
# ## Decompose arrays
#
# `tilewise.svd` returns `U`, `s` and `Vt` as `numpy.linalg.svd` does with `full_matrices=False`, or
# only the largest components. This matrix is of rank 20, plus a little noise:

# %%
signal = rng.random((2000, 20)) @ rng.random((20, 1000)) + 1e-3 * rng.standard_normal((2000, 1000))
u, s, vt = tilewise.svd(signal, components=20)
error = numpy.linalg.norm(signal - (u * s) @ vt) / numpy.linalg.norm(signal)
print(f"{u.shape} {s.shape} {vt.shape}, relative error {error:.1e}")

# %% [markdown]
# ## Work on files
#
# Each array argument can also be a path. With `out=PATH` the result is written to a file, and the
# call returns its record. The format follows from the extension: `.npy`, `.h5`, `.csv`, `.mtx` and
# [others](../reference/formats.md).

# %%
tilewise.generate(out="A.npy", shape=(5000, 3000), kind="graded", force=True)
facts = tilewise.info("A.npy", stats=True)
facts["shape"], facts["dtype"], facts["statistics"]

# %% [markdown]
# `A.npy` has 120 MB, and so has its transpose. With `memory="64MiB"` all ranks together never use
# more than that:

# %%
tilewise.transpose("A.npy", out="AT.npy", memory="64MiB", verify="fast", force=True)

# %% [markdown]
# A product streams past a tile of the result in the same way. A full decomposition does so only if
# one side of the matrix is far longer than the other. This one does not fit and is refused:

# %% tags=["raises-exception"]
tilewise.svd("A.npy", out="full", memory="64MiB")

# %% [markdown]
# The largest components need little memory, whatever the size of the file. They are written into a
# folder:

# %%
tilewise.svd("A.npy", out="svd", components=5, memory="64MiB", force=True)
numpy.load("svd/s.npy")

# %% [markdown]
# Large results are best opened as maps. tilewise reads the file of such a map directly, without a
# copy:

# %%
transposed = numpy.load("AT.npy", mmap_mode="r")
tilewise.norm(transposed).frobenius

# %% [markdown]
# ## Run a study
#
# A study runs commands over many sizes, rank counts and options, several times each, and knows which
# plots and tables to make of the results. `quick` is one of those that [come with the
# package](../reference/study.md); your own TOML file works in the same way. At the scale `tiny` it
# takes half a minute, and a line below the cell counts the runs.

# %%
results = tilewise.run_study("quick", scale="tiny")
tilewise.plots(results)

# %% [markdown]
# At this size a second rank does not pay: starting and exchanging take longer than multiplying.
# `scale="default"` shows where that changes.
#
# `load_study` gives all launches, as a pandas DataFrame where pandas is installed, otherwise as a
# list of dicts:

# %%
launches = tilewise.load_study(results)
len(launches)

# %% [markdown]
# ## Further
#
# * [Python](../reference/python.md): every function, errors, threads.
# * [From installation to the first report](first-report.md): on the command line, with a page for browsers.
# * [Study](../reference/study.md): write your own.
