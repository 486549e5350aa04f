# Every target creates .venv if necessary, and reuses it.
PYTHON ?= python3
BIN := .venv/bin
BASE := .venv/base-installed
STAMP := .venv/installed
D3RLPY := .venv-d3rlpy
AGILERL := .venv-agilerl
BROWSER := .venv/browser-installed
SERVICES := .venv/services-installed

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-docs test-slow test-ray test-d3rlpy test-browser test-services lint format check bench agilerl fuzz clean

help:  ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 20

setup: $(STAMP)  ## Create .venv with all development dependencies

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps minigrid  # it asks for pygame, whose files pygame-ce replaces
	@touch $@

$(BASE): pyproject.toml constraints.txt
	@echo 'Installing esbas into .venv (NumPy, SciPy, Numba, Matplotlib, Gymnasium)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

demo: $(BASE)  ## Install the base package and train on CartPole; figure and report in ./esbas-demo
	@$(BIN)/esbas demo

test: setup  ## Run the default tests
	$(BIN)/python -m pytest -n 2

test-docs: setup  ## Run every block of the documentation and every example
	$(BIN)/python -m pytest -n 2 -m docs

test-slow: setup  ## Run the default tests and the slow reproductions
	$(BIN)/python -m pytest -n 2 -m 'not docs and not ray and not services'

test-ray: setup  ## Run the tests on a Ray cluster of two nodes, which they start on this machine
	$(BIN)/python -m pytest -m ray tests/cluster

test-d3rlpy: $(D3RLPY)/installed  ## Run the tests of d3rlpy's algorithms, in a separate environment
	$(D3RLPY)/bin/python -m pytest tests/d3

$(D3RLPY)/installed: pyproject.toml constraints.txt
	test -x $(D3RLPY)/bin/python || $(PYTHON) -m venv $(D3RLPY)
	$(D3RLPY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[d3rlpy]' hypothesis pytest
	@touch $@

test-browser: $(BROWSER)  ## Open every report and the board in a browser, on a wide and a narrow screen; installs chromium if necessary
	@command -v chromium > /dev/null || { \
		as_root=$$(test "$$(id -u)" = 0 || echo sudo) && $$as_root apt-get update --quiet \
		&& $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends chromium; \
	} || { echo 'make test-browser needs chromium, but apt-get could not install it: install chromium and put it on PATH' >&2; exit 1; }
	$(BIN)/python -m pytest tests/browser

$(BROWSER): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	@touch $@

test-services: $(SERVICES)  ## Run the tests of studies in PostgreSQL, of killed processes and of hostile requests; installs PostgreSQL if necessary
	@command -v initdb > /dev/null || ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || { \
		as_root=$$(test "$$(id -u)" = 0 || echo sudo) && $$as_root apt-get update --quiet \
		&& $$as_root env DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes --no-install-recommends postgresql; \
	} || { echo 'make test-services needs PostgreSQL, but apt-get could not install it: install it and put initdb on PATH' >&2; exit 1; }
	$(BIN)/python -m pytest -m services

$(SERVICES): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt schemathesis
	@touch $@

lint: setup  ## Check format, style, types and import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup  ## Format the code and apply automatic fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: lint test test-docs test-ray test-d3rlpy test-browser test-services  ## Run everything that CI checks

bench: setup  ## Measure speed, as ratios within one run
	$(BIN)/python -m benchmarks

agilerl: $(AGILERL)/installed  ## Create .venv-agilerl, the environment of python -m benchmarks.agilerl

$(AGILERL)/installed: pyproject.toml constraints.txt benchmarks/agilerl/requirements.txt
	test -x $(AGILERL)/bin/python || $(PYTHON) -m venv $(AGILERL)
	$(AGILERL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r benchmarks/agilerl/requirements.txt -e . 'gymnasium[box2d]' MinAtar
	@touch $@

fuzz: setup  ## Try hostile input on everything that is read back: files, states
	PYTHONPATH=tests $(BIN)/python -m fuzz

clean:  ## Remove environments, caches and results
	rm -rf .venv $(D3RLPY) $(AGILERL) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist src/*.egg-info esbas-*/
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
