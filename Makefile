# Everything from a fresh machine with Python and make: `make demo`, `make test`.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python -m

# Numba notices a changed kernel, but not a change in one that it calls from another file.
export NUMBA_CACHE_DIR := $(CURDIR)/.numba/$(shell cat src/keyhole/kernels/*.py | cksum | tr ' ' -)

.PHONY: test test-data fuzz check demo reproduce bench docs clean

test: check
	$(RUN) pytest
	@echo "Left out: tests on the paper's own data files. With a folder of them: make test-data KEYHOLE_DATA=folder"

# Needs a folder of the public data files, and a package index.
test-data: $(VENV)/installed
	KEYHOLE_DATA="$(KEYHOLE_DATA)" $(RUN) pytest -m data tests/test_paper_data.py

fuzz: $(VENV)/installed
	KEYHOLE_FUZZ=long $(RUN) pytest tests/test_fuzzing.py

check: $(VENV)/installed
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(RUN) mypy
	$(VENV)/bin/lint-imports

demo: $(VENV)/installed
	$(VENV)/bin/python examples/online.py

reproduce: $(VENV)/installed
	$(VENV)/bin/keyhole reproduce

bench: $(VENV)/installed
	$(VENV)/bin/python benchmarks/textbook.py
	$(VENV)/bin/python benchmarks/simulation.py
	$(RUN) benchmarks.peers

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --editable '.[dev]'
	touch $@

docs: $(VENV)/installed
	$(VENV)/bin/mkdocs build --quiet
	@echo site/index.html

clean:
	rm -rf $(VENV) .numba .peers site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
