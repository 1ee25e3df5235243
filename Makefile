# `make demo` and `make test` set up all that they need in .venv; nothing is installed elsewhere.
# PYTHON: which Python to build .venv with, 3.10 or newer.
# WORKERS: how many tests run at once. Tests of crawls wait about as long as they compute.

PYTHON ?= python3
WORKERS ?= 4
# Pythons that need not be on the PATH; tox gives up at one that is too old for it.
PYENV := $(wildcard $(HOME)/.pyenv/versions/3.1[0-9].*/bin/python)
# The oldest supported Python that is here and runs: 10 is Python 3.10.
OLDEST = $(firstword $(foreach minor,10 11 12 13,$(shell for python in python3.$(minor) \
	$(HOME)/.pyenv/versions/3.$(minor).*/bin/python; do "$$python" -c "" 2>/dev/null && echo $(minor) && break; done)))
VENV := .venv
BIN := $(VENV)/bin
TOX = $(BIN)/tox $(if $(PYENV),--discover $(PYENV))
# Named after the Python, so that naming another one sets up anew.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
READY := $(VENV)/ready-$(VERSION)
# The demo needs little of that, and is content with all of it.
DEMO_READY := $(or $(wildcard $(READY)),$(VENV)/ready-for-demo-$(VERSION))

.PHONY: help venv demo test test-select test-no-reactor test-oldest test-all check bench clean

help: ## Say what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

venv: $(READY) ## Set up .venv with all that development takes

demo: $(DEMO_READY) ## Crawl the example site and see what its robots.txt keeps out
	@$(BIN)/python example_project/demo.py

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n $(WORKERS)

test-select: $(READY) ## Run the tests of crawls with another reactor than asyncio's
	CRAWL_MODES=select $(BIN)/python -m pytest -n $(WORKERS) tests/crawls

test-no-reactor: $(READY) ## Run the tests of crawls without a reactor
	CRAWL_MODES="no reactor" $(BIN)/python -m pytest -n $(WORKERS) tests/crawls

test-oldest: $(READY) ## Run the tests of crawls on the oldest Scrapy, and the oldest Python there is
	@echo "The oldest Scrapy is tested on Python 3.$(OLDEST), the oldest that is here; 3.10 is the oldest supported."
	$(TOX) -e py3$(OLDEST)-scrapy211 -- -n $(WORKERS) tests/crawls

check: $(READY) ## Lint, check types, build the package and check its metadata
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	rm -rf build dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

bench: $(READY) ## Run a benchmark: make bench NAME=broad (or single, hosts, polite, throttled, hostile, stores, check, fleet, ask, linear, memory, readings, soak)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m benchmarks $(NAME)

test-all: $(READY) ## Run the tests on every Python and Scrapy of the matrix in setup.cfg
	$(TOX)

clean: ## Remove what was built and installed here
	rm -rf $(VENV) .tox build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# Made anew when what they are made from changes.
$(READY): GROUP = dev
$(VENV)/ready-for-demo-$(VERSION): GROUP = demo
$(READY) $(VENV)/ready-for-demo-$(VERSION): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@echo "Setting up $(VENV); this takes a minute the first time."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group $(GROUP)
	@touch $@
