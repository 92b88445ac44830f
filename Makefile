# One command each: build, test, lint, demo, benchmark. Everything sets itself up in .venv/ and build/.

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
OPENMPI := $(if $(shell command -v mpicxx.openmpi),openmpi)
# One of the builds is the oldest GCC's, where there is one beside the default.
OLDEST_GXX := $(firstword $(foreach version,10 11 12,$(shell command -v g++-$(version))))
COMPILER_openmpi := -DCMAKE_CXX_FLAGS_RELEASE=-O1 $(if $(OLDEST_GXX),-DCMAKE_CXX_COMPILER=$(OLDEST_GXX))
COMPILERS := $(foreach version,14 15 16 17 18 19 20 21 22,$(shell command -v clang++-$(version)))
# After `make develop` the package is these Python sources, which need no building.
EDITABLE := $(wildcard $(VENV)/.editable)
SOURCES := $(shell find cpp $(if $(EDITABLE),,python) cmake tools/backend -type f -not -name '*.pyc' 2>/dev/null) \
           CMakeLists.txt pyproject.toml README.md LICENSE
CXX_FILES = $(shell find cpp tests/cpp tests/cuda tests/fuzz bench examples -name '*.cpp' -o -name '*.hpp')

export PATH := $(BIN):$(PATH)
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
PYTEST := $(BIN)/python -m pytest
SLOW := tests/cluster tests/python/slow
# Python compiles a module when it is first imported: for a demonstration most of them never are.
PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-compile
# The package and the C++ tests are built in one folder, so that each source is compiled once for both.
IN_DEV := --config-settings=build-dir=build/dev --config-settings=cmake.define.TILEWISE_TESTS=ON

.DELETE_ON_ERROR:
.PHONY: docs help install develop demo test check slow test-slow test-rest test-wheel quick compilers scaling reports-simulated simulator lint format tidy wheel release notebook torture fuzz fuzz-formats fuzz-mutations bench bench-bits bench-builds bench-cluster bench-measure bench-multiply bench-plan bench-products bench-io bench-limited bench-sets bench-simulated bench-stencil bench-svd bench-transpose bench-truth clean dist-clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

$(VENV)/.tools: pyproject.toml tools/bootstrap.py
	@$(PYTHON) tools/bootstrap.py $(VENV) $(if $(filter wheel release,$(MAKECMDGOALS)),--no-compiler)
	@touch $@

$(VENV)/.linters: $(VENV)/.tools
	@$(PIP_INSTALL) --group lint
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	@echo "Building and installing tilewise into $(VENV)"
	@$(PIP_INSTALL) $(IN_DEV) $(if $(EDITABLE),--editable) .
	@touch $@

# Tests start Python thousands of times, also where PYTHONDONTWRITEBYTECODE is set.
$(VENV)/.testers: $(VENV)/.tools | $(VENV)/.installed
	@$(PIP_INSTALL) --group test
	@$(BIN)/python -m compileall -q -j $(JOBS) $(VENV)/lib/python3*/site-packages >/dev/null || true
	@touch $@

install: $(VENV)/.installed  ## build tilewise and install it into .venv

develop: $(VENV)/.tools  ## the same in place: an edit of Python needs no other installation
	@touch $(VENV)/.editable
	@rm -f $(VENV)/.installed
	@$(MAKE) --no-print-directory install

demo: $(VENV)/.installed  ## multiply real matrices from file to file, show the result and the time
	@$(BIN)/python tools/demo.py

test: build-dev $(VENV)/.testers  ## each ability once, and all that is quick: about ten minutes with what it builds
	ctest --test-dir build/dev -L quick -j $(JOBS) --output-on-failure --no-tests=error
	$(PYTEST) -n 2 --durations=10 --part sample

check: lint docs slow test test-rest  ## every test; what continuous integration runs

test-rest: build-dev $(VENV)/.testers  ## what make test leaves out, but the slow tests
	ctest --test-dir build/dev -LE quick -j $(JOBS) --output-on-failure --no-tests=error
	$(BIN)/python tools/check_processors.py build/dev
	$(PYTEST) -n 2 --durations=10 --part rest $(addprefix --ignore=,$(SLOW))

# The slow tests mostly wait: in what they leave of the cores the other builds compile, and what BESIDE names. They use Open MPI's worker.
slow: $(VENV)/.installed $(VENV)/.testers  ## the slow tests: Open MPI, clusters, failures, sanitizers
	$(if $(OPENMPI),$(MAKE) --no-print-directory build-openmpi TARGET="--target tilewise-worker")
	nice -n 19 $(MAKE) --no-print-directory $(OPENMPI:%=build-%) build-asan build-dev $(BESIDE) QUIET="-- --quiet" & builds=$$!; \
	$(MAKE) --no-print-directory test-slow; tests=$$?; wait $$builds && exit $$tests
	$(MAKE) --no-print-directory $(OPENMPI:%=test-cpp-%) test-cpp-asan

test-slow: $(VENV)/.installed $(VENV)/.testers
	$(PYTEST) -n 2 --durations=30 $(SLOW)

build-%: $(VENV)/.installed
	cmake --preset $* -DPython_EXECUTABLE=$(BIN)/python $(COMPILER_$*)
	cmake --build build/$* $(TARGET) $(QUIET)

test-cpp-%: build-%
	ctest --test-dir build/$* -j $(JOBS) --output-on-failure --no-tests=error

quick: $(VENV)/.installed $(VENV)/.testers  ## the Python tests that start no ranks
	$(PYTEST) -q -n auto tests/python/unit

simulator: $(VENV)/.installed  ## the worker for --simulate; needs SimGrid (apt install libsimgrid-dev)
	cmake --preset simgrid -DPython_EXECUTABLE=$(BIN)/python $(SIMULATOR)
	cmake --build build/simgrid --target tilewise-worker $(QUIET)
	install build/simgrid/tilewise-simulated $$($(BIN)/python -c "import os; from tilewise.launch import worker; print(os.path.dirname(worker.find()))")

scaling: simulator  ## the plots and tables of docs/design/scaling.md, from 1,024 simulated ranks: 15 minutes
	$(BIN)/tilewise study run scaling --into build/scaling --part 1 & first=$$!; \
	$(BIN)/tilewise study run scaling --into build/scaling --part 2; second=$$?; wait $$first && exit $$second
	$(BIN)/tilewise report build/scaling -o build/scaling/scaling.html --plots build/scaling/figures --tables build/scaling/tables
	mkdir -p docs/pictures/scaling && cp build/scaling/figures/plot-*.svg docs/pictures/scaling

reports-simulated: simulator  ## reports 1, 2 and 3 on their own rank counts, simulated: the tables of docs/reports/simulated.md, 8 minutes
	$(BIN)/tilewise study run reports-simulated --into build/reports-simulated --part 1 & first=$$!; \
	$(BIN)/tilewise study run reports-simulated --into build/reports-simulated --part 2; second=$$?; wait $$first && exit $$second
	$(BIN)/tilewise report build/reports-simulated -o build/reports-simulated/reports.html --plots build/reports-simulated/figures --tables build/reports-simulated/tables
	cp build/reports-simulated/figures/plot-speedup.svg docs/pictures/reports-simulated.svg

compilers: $(VENV)/.tools  ## the package by other compilers: COMPILERS="g++-13 clang++-19", else each clang++-N here
	cmake --preset compilers -DPython_EXECUTABLE=$(BIN)/python
	$(BIN)/python tools/check_compilers.py build/compilers $(COMPILERS)

lint: $(VENV)/.linters $(VENV)/.testers $(VENV)/.installed  ## formatting, types, floors
	ruff check .
	ruff format --check .
	mypy
	MYPYPATH=bench:tests/cluster mypy --explicit-package-bases bench
	MYPYPATH=tests/torture mypy --explicit-package-bases tests/torture
	@clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/python tools/check_floors.py
	$(BIN)/python tools/check_prose.py

format: $(VENV)/.linters  ## rewrite the sources in the house's format
	ruff check --fix-only .
	ruff format .
	clang-format -i $(CXX_FILES)

tidy: $(VENV)/.linters  ## clang-tidy over the C++ sources (optional, slow)
	cmake --preset dev -DPython_EXECUTABLE=$(BIN)/python -DCMAKE_EXPORT_COMPILE_COMMANDS=ON
	clang-tidy -p build/dev --quiet $(filter cpp/%.cpp,$(CXX_FILES))

wheel: $(VENV)/.tools  ## a wheel for glibc 2.28 and newer in dist/; ARGS="--machine aarch64": for 64-bit ARM; ARGS="--folder DIR": with all that it needs, to install offline
	@$(PIP_INSTALL) --group wheel
	$(BIN)/python tools/wheel.py $(ARGS)

test-wheel: $(VENV)/.testers  ## the wheel that make wheel has built, installed under every Python here
	$(PYTEST) tests/python/slow/test_wheel.py

release: $(VENV)/.tools  ## source archive and wheels in dist/, checked and tried under every Python here; ARGS="--machines x86_64"
	@$(PIP_INSTALL) --group release
	$(BIN)/python tools/release.py $(ARGS)

docs: $(VENV)/.tools  ## the documentation as a site in build/site, which needs no network
	@$(PIP_INSTALL) --group docs
	$(BIN)/python -m sphinx --quiet --fresh-env --write-all --fail-on-warning --keep-going -c docs -d build/doctrees . build/site

notebook: $(VENV)/.installed $(VENV)/.testers  ## run the tutorial's notebook, and write its page and pictures
	$(BIN)/python tools/notebook_page.py

bench: bench-multiply bench-products bench-io bench-transpose bench-stencil bench-svd bench-measure bench-plan  ## every benchmark, and where we lose
	@$(BIN)/python bench/losses.py

bench-multiply: $(VENV)/.installed  ## the multiply figures beside their peers; ARGS="--quick --only NAME --runs N"
	$(BIN)/python bench/run.py multiply $(ARGS)

bench-products: $(VENV)/.installed  ## the product kernel alone beside numpy: squares, 200 random shapes, tiles beside BLAS
	$(BIN)/python bench/run.py products $(ARGS)

bench-sets: $(VENV)/.installed  ## every kernel on every instruction set that is here: shares of its bound and of a peer, the worst first
	$(BIN)/python bench/run.py sets $(ARGS)

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

bench-cluster: $(VENV)/.installed $(VENV)/.testers  ## exchanges by way of a leader a node, on three virtual hosts; needs root
	$(BIN)/python bench/run.py cluster $(ARGS)

bench-simulated: simulator $(VENV)/.testers  ## simulated ranks beside real ones: virtual hosts, this machine; start and end; needs root
	$(BIN)/python bench/run.py simulated $(ARGS)

bench-measure: $(VENV)/.installed  ## messages beside OSU's, files, the cost model, and whether a second measurement agrees
	$(BIN)/python bench/run.py measure $(ARGS)

bench-truth: $(VENV)/.installed  ## what measure says beside small independent programs, for each instruction set
	$(BIN)/python bench/run.py truth $(ARGS)

bench-plan: $(VENV)/.installed  ## predictions beside what jobs take, and what the plan's choice costs
	$(BIN)/python bench/run.py plan $(ARGS)

bench-limited: $(VENV)/.installed  ## larger than memory, in a control group, beside the same in memory; needs root
	$(BIN)/python bench/run.py limited $(ARGS)

bench-bits: $(VENV)/.installed  ## 200 random jobs by this build and another, bit by bit: OTHER=/path/to/its/.venv/bin/tilewise
	@$(BIN)/python bench/compare_bits.py $(OTHER) $(ARGS)

bench-builds: $(VENV)/.installed  ## this build beside another: OTHER=/path/to/its/.venv/bin/tilewise ARGS="--only svd"
	$(BIN)/python bench/compare_builds.py $(OTHER) $(ARGS)

torture: $(VENV)/.installed $(VENV)/.testers  ## each I/O call fails in turn, then 1000 kills (hours); ARGS="sweep --every 50" is a part
	$(BIN)/python tests/torture/run.py $(ARGS)

fuzz: $(VENV)/.installed $(VENV)/.testers  ## fuzz all targets, SECONDS=60 each; TARGETS="text npy" names some (clang, libclang-rt-dev)
	@$(PIP_INSTALL) atheris
	$(BIN)/python tests/fuzz/run.py --seconds $(or $(SECONDS),60) $(TARGETS)

fuzz-mutations: $(VENV)/.installed $(VENV)/.testers  ## 20000 inputs changed at random, under strace; COUNT=400 TARGETS="journal seam"
	$(BIN)/python tests/fuzz/mutations.py --count $(or $(COUNT),20000) $(TARGETS)

fuzz-formats: $(VENV)/.installed $(VENV)/.testers  ## 5000 files by other libraries with all their options, read to the bit (an hour); FILES=300 ARGS="--only h5,tif"
	$(BIN)/python tests/torture/formats.py --files $(or $(FILES),5000) $(ARGS)

clean:  ## remove what was built, keep .venv
	rm -rf build demo-output .pytest_cache .ruff_cache .mypy_cache .hypothesis $(VENV)/.installed

dist-clean: clean  ## remove everything that is not in git
	rm -rf $(VENV)
