# Each target that needs the environment makes it first, in .venv; nothing else is touched.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.DEFAULT_GOAL := help
.PHONY: help setup check test test-slow demo bench clean

help:  ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-10s %s\n", $$1, $$2 }' Makefile

setup: $(READY)  ## Make the environment in .venv

$(READY): pyproject.toml scripts/constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint scripts/constraints.txt --editable '.[dev]'
	@touch $@

check: $(READY)  ## Check format, lint and types
	$(BIN)/ruff format --check nmt tests scripts
	$(BIN)/ruff check nmt tests scripts
	$(BIN)/mypy

test: $(READY)  ## Run the default tests (a few minutes on two cores)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m 'not slow' -n auto --maxprocesses 8 --dist worksteal

test-slow: $(READY)  ## Run the slow tests
	$(BIN)/python -m pytest -m slow

demo: $(READY)  ## Train on the embedded corpus, score, and translate three sentences
	$(BIN)/python scripts/demo.py

bench: $(READY)  ## Measure the results that the README names (hours)
	$(BIN)/python scripts/bench/multi30k.py

clean:  ## Delete the environment, the demo's run and what tools left
	rm -rf .venv runs/demo build *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find nmt tests scripts -name __pycache__ -type d -exec rm -rf {} +
