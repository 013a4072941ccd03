# Each verb does what it says; `make` alone lists them.
VENV   ?= .venv
PYTHON ?= python3
# Two workers for each core: half of the time tests wait for what they have started. What takes long comes
# first (tests/conftest.py).
PYTEST_ARGS ?= -n $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 3 / 2) --dist loadfile --no-loadscope-reorder
# Where tests have their files: in memory, if there is room for them; else where temporary files are.
MEMORY   := $(shell [ "$$(df --output=avail -k /dev/shm 2>/dev/null | tail -n 1)" -gt 4000000 ] 2>/dev/null && echo /dev/shm)
ROUNDS ?= 20
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.stamp

.PHONY: help setup build demo test check release lint bench bench-alloc bench-bursts bench-daemons bench-evidence bench-forward bench-mixtures bench-reach bench-real bench-rebalance bench-sim bench-slow-osts bench-time bench-tune dist day-one chaos docs try-docs clean packages fuzz hostile sanitize soak

help:
	@echo "make setup   a virtual environment in $(VENV) with tarazu and all extras; compiles the C"
	@echo "make demo    an emulated Lustre with the real daemons; shows the balance (about 2 minutes)"
	@echo "make test    every test"
	@echo "make check   style, types, and the tests of the rooms that differ from main: under a minute"
	@echo "make dist    wheel, and for machines without internet a tarball, Debian packages and RPMs, in dist/ (DIST_ARGS='--only deb')"
	@echo "make release all of make dist from a clean commit, the same bytes each time, with sums; signs nothing (RELEASE_ARGS=--twice compares)"
	@echo "make day-one the packages in clean trees, and a first day with them from install to uninstall (as root; 3 minutes)"
	@echo "make soak    the tests of races, kills, crowds and bounds, 20 times in a row (ROUNDS=20; hours)"
	@echo "make chaos   200 kills, partitions, full disks and clock jumps under load (10 to 20 minutes; as root; CHAOS_ARGS='--only NAME --seed S')"
	@echo "make hostile 1,000,000 malformed messages to each socket, malformed files to each reader (BENCH_ARGS='--only requests')"
	@echo "make lint    ruff, mypy, clang-format"
	@echo "make bench   speed and growth; results as a table"
	@echo "make bench-alloc   of the allocator alone (about 5 minutes)"
	@echo "make bench-daemons of the daemons at scale: 10,000 servers, 1,000 clients at once … (BENCH_ARGS='--only servers')"
	@echo "make bench-evidence  decisions judged on measured data of other machines, docs/validation.md (BENCH_ARGS='--only curves')"
	@echo "make bench-forward how many and which I/O resources: the papers' figures and claims, docs/forwarding.md (BENCH_ARGS='--only study')"
	@echo "make bench-mixtures   random mixtures of files on equal and unequal OSTs, against bounds (BENCH_ARGS='--search 6': CP-SAT)"
	@echo "make bench-reach   metadata servers, layouts tuned to a site's files (BENCH_ARGS='--only pfl')"
	@echo "make bench-real    a dozen jobs without and with tarazu by turns, on disks that take time or a mounted Lustre (BENCH_ARGS='--only forked')"
	@echo "make bench-rebalance  which existing files to move: beside bounds and lfs_migrate, and for a million files, docs/rebalancing.md"
	@echo "make bench-sim     the simulator beside formulas, SimGrid, measured systems and the daemons (BENCH_ARGS='--only table-6')"
	@echo "make bench-slow-osts  when a slow disk is seen, which healthy one is taken for slow, docs/benchmarks.md"
	@echo "make bench-time    jobs' times beside Lustre's own, round robin, random and a bound: 340 cells, docs/benchmarks.md"
	@echo "make bench-tune    parameters that learn: situations, learners, council, levers, docs/tuning-study.md (BENCH_ARGS='--only online')"
	@echo "make bench-bursts  spatial bursts: measures, mappings, node selection, Slurm's plugin, docs/bursts-study.md"
	@echo "make fuzz    map reader, lustre.lov codec and name templates fuzzed for a minute (clang)"
	@echo "make sanitize the library under Address-, UndefinedBehaviour- and ThreadSanitizer and valgrind"
	@echo "make docs    the site, with tables of settings, commands and metrics: build/site; the pictures of docs/"
	@echo "make try-docs every command of the docs typed into a shell, in a root of its own, on the testbed (as root; TRY_ARGS='--only quickstart.md')"
	@echo "make build   compile the C again after a change"

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "tarazu: python3 (3.11 or later) is needed"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "tarazu: the venv module is needed (Debian: apt install python3-venv)"; exit 1; }
	@command -v cc >/dev/null || { echo "tarazu: a C compiler is needed (Debian: apt install gcc libc6-dev)"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(STAMP): $(BIN)/python pyproject.toml CMakeLists.txt preload/CMakeLists.txt tarazu/sim/testbed/CMakeLists.txt \
          $(wildcard preload/*.[ch]) $(wildcard preload/*/*.[ch]) $(wildcard preload/*.def) \
          $(wildcard tarazu/sim/testbed/*.[ch]) $(wildcard tarazu/sim/testbed/*/*.[ch])
	@echo "== installing tarazu and what it needs into $(VENV)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

setup: $(STAMP)

build:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $(STAMP)

demo: setup
	$(BIN)/tarazu demo

packages:
	@tests/packages.sh

test: packages setup
	@# Hundreds of short programs are started: none of them should compile tarazu's modules for itself; nor should each
	@# worker prepare the asserts of a new tree's tests.
	@$(BIN)/python -m compileall -q -x tests/data tarazu tests
	@ls tests/__pycache__/*-pytest-*.pyc >/dev/null 2>&1 || { for half in 'tests/[a-d]*/' 'tests/[e-z]*/ tests/test_*.py'; do \
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -q $$half >/dev/null & done; wait; }
	PYTEST_DEBUG_TEMPROOT=$(MEMORY) PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PYTEST_ARGS) $(TESTS)

check: setup
	@$(BIN)/python -m tests.check

# What is missing is said before anything is installed or built.
dist:
	@$(PYTHON) packaging/dist.py --check $(DIST_ARGS)
	@$(MAKE) --no-print-directory setup
	$(BIN)/python packaging/dist.py $(DIST_ARGS)

release:
	@$(PYTHON) packaging/dist.py --check $(filter-out --twice --any,$(RELEASE_ARGS))
	@$(MAKE) --no-print-directory setup
	$(BIN)/python packaging/release.py $(RELEASE_ARGS)

day-one: packages setup
	$(BIN)/python packaging/day_one $(DAY_ONE_ARGS)

soak: packages setup
	$(BIN)/python -m tests.soak $(ROUNDS) $(PYTEST_ARGS) tests

chaos: packages setup
	$(BIN)/python -m tests.chaos $(CHAOS_ARGS)

hostile: packages setup
	$(BIN)/python -m tests.hostile $(BENCH_ARGS)

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	@if command -v clang-format >/dev/null; then clang-format --dry-run --Werror preload/*.[ch] preload/*/*.[ch] tarazu/sim/testbed/*.[ch]; \
	 else echo "clang-format is not installed: the C was not checked"; fi

bench: setup
	$(BIN)/python -m tests.benchmarks

fuzz:
	@tests/fuzz/run.sh 20

sanitize: packages setup
	$(BIN)/python -m tests.sanitize

bench-alloc: setup
	$(BIN)/python tests/benchmarks/allocate/bench_allocate.py $(BENCH_ARGS)

bench-daemons: setup
	$(BIN)/python -m tests.benchmarks.daemons $(BENCH_ARGS)

bench-evidence: setup
	$(BIN)/python -m tests.benchmarks.evidence $(BENCH_ARGS)

bench-forward: setup
	$(BIN)/python -m tests.benchmarks.forwarding $(BENCH_ARGS)

bench-mixtures: setup
	$(BIN)/python tests/benchmarks/allocate/mixtures.py $(BENCH_ARGS)

bench-reach: setup
	$(BIN)/python -m tests.benchmarks.reach $(BENCH_ARGS)

bench-real: setup
	$(BIN)/python -m tests.benchmarks.real $(BENCH_ARGS)

bench-rebalance: setup
	$(BIN)/python -m tests.benchmarks.rebalance $(BENCH_ARGS)

bench-slow-osts: setup
	$(BIN)/python -m tests.benchmarks.slow_osts $(BENCH_ARGS)

bench-time: setup
	$(BIN)/python -m tests.benchmarks.time $(BENCH_ARGS)

bench-sim: setup
	$(BIN)/tarazu sim validate --full $(BENCH_ARGS)

bench-bursts: setup
	$(BIN)/python -m tests.benchmarks.bursts $(BENCH_ARGS)

bench-tune: setup
	$(BIN)/python -m tests.benchmarks.tuning $(BENCH_ARGS)

try-docs: packages setup
	$(BIN)/python -m tests.docs $(TRY_ARGS)

docs: setup
	$(BIN)/python docs/generate.py
	$(BIN)/python docs/sick_ost.py
	$(BIN)/python docs/whatif.py
	$(BIN)/python -m tests.benchmarks.evidence._headroom
	$(BIN)/python docs/dashboards.py
	$(BIN)/python -m tests.parts.page.pictures
	$(BIN)/python docs/top.py
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site
	@echo "the site: build/site/index.html"

clean:
	rm -rf build dist $(VENV) demo-output soak-output
