# Everything from a fresh machine with Python, make and a C compiler: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m

# What compiled kernels are made from.
KERNELS := setup.py $(wildcard src/keyhole/core/kernels/*.py src/keyhole/core/kernels/*.pxd)

.PHONY: build test test-data fuzz torture coverage sanitize check demo reproduce bench bench-before docs wheel clean

build: $(VENV)/built

test: check
	$(RUN) pytest --numprocesses auto --dist worksteal
	@echo "Left out: tests on the paper's own data files. With a folder of them: make test-data KEYHOLE_DATA=folder"

# Needs a folder of the public data files, and a package index.
test-data: $(VENV)/built
	KEYHOLE_DATA="$(KEYHOLE_DATA)" $(RUN) pytest -m data tests/lab/test_paper_data.py

fuzz: $(VENV)/built
	KEYHOLE_FUZZ=long $(RUN) pytest tests/project/test_fuzzing.py

# The faults that the decision service must survive, at full length: some hours. Shorter:
# make torture MINUTES=2 TORTURE="--kills 50 --losses 200 --step 7 --examples 100 --requests 1000"
MINUTES ?= 60
torture: $(VENV)/built
	$(RUN) tests.service.torture --minutes $(MINUTES) $(TORTURE)

# Of the core, whose floor is in pyproject.toml; compiled kernels are not seen by it.
coverage: $(VENV)/built
	$(RUN) pytest --cov=keyhole.core --cov-report=term-missing:skip-covered

check: $(VENV)/built
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(RUN) mypy
	$(VENV)/bin/lint-imports

demo: $(VENV)/built
	$(VENV)/bin/python examples/online.py

reproduce: $(VENV)/built
	$(VENV)/bin/keyhole reproduce

bench: $(VENV)/built
	$(RUN) benchmarks.textbook
	$(RUN) benchmarks.simulation
	$(RUN) benchmarks.peers

# This tree beside an earlier commit: make bench-before REF=... [OPTIONS="--only 'online*' --json file"]
bench-before: $(VENV)/built
	$(RUN) benchmarks.before $(REF) $(OPTIONS)

# Compiles what changed, as importing it would.
$(VENV)/built: $(VENV)/installed $(KERNELS)
	$(VENV)/bin/python setup.py --quiet build_ext --inplace
	touch $@

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --editable '.[dev]'
	touch $@

# Built from the source distribution, so that no stray file is included.
wheel: $(VENV)/built
	rm -rf dist
	$(RUN) build
	@ls dist/*

# Kernels whose every access to memory is checked, in a folder of their own. gcc's libraries have to
# be loaded before Python is. Python's own allocator would hide overruns, and what it never frees is
# no leak of ours.
SANITIZE := build/sanitize
SANITIZED ?= $(addprefix tests/,online/test_bandit.py core/test_choice.py core/test_choosing.py core/test_core.py core/test_deferring.py core/test_drawing.py core/test_exploring.py core/test_intercept.py core/test_missing.py core/test_normals.py online/test_feature_files.py online/test_feature_merging.py online/test_once.py online/test_waiting.py core/test_posterior.py core/test_predicting.py core/test_probability.py lab/test_simulate.py core/test_standardizing.py core/test_textbook_replay.py)
sanitize: $(VENV)/built
	rm -rf $(SANITIZE)
	mkdir -p $(SANITIZE)
	cp -r setup.py pyproject.toml README.md LICENSE src tests $(SANITIZE)
	rm -rf $(SANITIZE)/src/keyhole/core/kernels/compiled
	cd $(SANITIZE) && CFLAGS="-g -fsanitize=address,undefined -fno-omit-frame-pointer" \
	    $(abspath $(VENV))/bin/python setup.py --quiet build_ext --inplace
	cd $(SANITIZE) && PYTHONPATH=src PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
	    LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" \
	    $(abspath $(VENV))/bin/python -m pytest -p no:cacheprovider $(SANITIZED)

docs: $(VENV)/built
	$(VENV)/bin/mkdocs build --quiet
	@echo site/index.html

clean:
	rm -rf $(VENV) build dist src/keyhole/core/kernels/compiled src/*.egg-info .before .peers site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
