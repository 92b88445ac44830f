# One command each: build, test, lint, demo, benchmark. Everything sets itself up in .venv/ and build/.

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
MPICXX_OPENMPI := $(shell command -v mpicxx.openmpi)
PRESETS := dev asan $(if $(MPICXX_OPENMPI),openmpi)
SOURCES := $(shell find cpp python cmake -type f -not -name '*.pyc' 2>/dev/null) \
           CMakeLists.txt pyproject.toml README.md LICENSE
CXX_FILES = $(shell find cpp tests/cpp tests/fuzz bench examples -name '*.cpp' -o -name '*.hpp')

export PATH := $(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation

.DELETE_ON_ERROR:
.PHONY: help install demo test test-cpp test-python lint format tidy torture fuzz bench bench-measure bench-multiply bench-io bench-stencil bench-svd bench-transpose clean dist-clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

$(VENV)/.tools: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	@echo "Building and installing tilewise into $(VENV)"
	@$(PIP_INSTALL) ".[test]"
	@touch $@

install: $(VENV)/.installed  ## build tilewise and install it into .venv

demo: $(VENV)/.installed  ## multiply real matrices from file to file, show the result and the time
	@$(BIN)/python tools/demo.py

test: test-cpp test-python  ## every test: C++ on both MPI libraries and under sanitizers, then Python

test-cpp: $(addprefix test-cpp-,$(PRESETS))

test-cpp-%: $(VENV)/.tools
	cmake --preset $* -DPython_EXECUTABLE=$(BIN)/python
	cmake --build build/$*
	ctest --test-dir build/$* --output-on-failure --no-tests=error

test-python: $(VENV)/.installed test-cpp
	$(BIN)/python -m pytest

lint: $(VENV)/.tools $(VENV)/.installed  ## formatting, types, floors
	ruff check .
	ruff format --check .
	mypy
	MYPYPATH=bench mypy --explicit-package-bases bench
	MYPYPATH=tests/torture mypy --explicit-package-bases tests/torture
	clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/python tools/check_floors.py

format: $(VENV)/.tools  ## rewrite the sources in the house's format
	ruff check --fix-only .
	ruff format .
	clang-format -i $(CXX_FILES)

tidy: $(VENV)/.tools  ## clang-tidy over the C++ sources (optional, slow)
	cmake --preset dev -DPython_EXECUTABLE=$(BIN)/python -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
	clang-tidy -p build/dev --quiet $(filter cpp/%.cpp,$(CXX_FILES))

bench: bench-multiply bench-io bench-transpose bench-stencil bench-svd bench-measure  ## every benchmark

bench-multiply: $(VENV)/.installed  ## the multiply figures beside their peers; ARGS="--quick --only NAME --runs N"
	$(BIN)/python bench/run.py multiply $(ARGS)

bench-io: $(VENV)/.installed  ## every way of reading and writing beside the limit, text beside numpy and pandas
	@$(PIP_INSTALL) pandas
	$(BIN)/python bench/run.py io $(ARGS)

bench-transpose: $(VENV)/.installed  ## transposition in memory, beside cp, larger than memory, one-sided beside two-sided
	@$(PIP_INSTALL) dask
	$(BIN)/python bench/run.py transpose $(ARGS)

bench-stencil: $(VENV)/.installed  ## sweeps beside numba, OpenCV, SciPy, Devito and a copy; every way to exchange
	$(BIN)/python bench/run.py stencil $(ARGS)

bench-svd: $(VENV)/.installed  ## decompositions beside ScaLAPACK and LAPACK: time, digits, large files, speedups
	$(BIN)/python bench/run.py svd $(ARGS)

bench-measure: $(VENV)/.installed  ## messages beside OSU's, files, the cost model, and whether a second measurement agrees
	$(BIN)/python bench/run.py measure $(ARGS)

torture: $(VENV)/.installed  ## each I/O call fails in turn, then 1000 kills (hours); ARGS="sweep --every 50" is a part
	$(BIN)/python tests/torture/run.py $(ARGS)

fuzz: $(VENV)/.installed  ## fuzz all targets, SECONDS=60 each; TARGETS="text npy" names some (clang, libclang-rt-dev)
	@$(PIP_INSTALL) atheris
	$(BIN)/python tests/fuzz/run.py --seconds $(or $(SECONDS),60) $(TARGETS)

clean:  ## remove what was built, keep .venv
	rm -rf build demo-output .pytest_cache .ruff_cache .mypy_cache .hypothesis $(VENV)/.installed

dist-clean: clean  ## remove everything that is not in git
	rm -rf $(VENV)
