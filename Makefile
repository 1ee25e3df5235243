# `make demo` and `make test` set up all that they need in .venv; nothing is installed elsewhere.
# PYTHON: which Python to build .venv with, 3.10 or newer. WORKERS: how many tests run at once.

PYTHON ?= python3
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
# Named after the Python, so that naming another one sets up anew.
READY := $(VENV)/ready-$(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')

.PHONY: help demo test check bench test-all clean

help: ## Say what there is to make
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

demo: $(READY) ## Crawl the example site and see what its robots.txt keeps out
	@$(BIN)/python example_project/demo.py

test: $(READY) ## Run the tests
	$(BIN)/python -m pytest -n $(WORKERS)

check: $(READY) ## Lint, check types, build the package and check its metadata
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	rm -rf build dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*

bench: $(READY) ## Run a benchmark: make bench NAME=broad (or single, hosts, stores, fleet, parse, check, linear)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m benchmarks $(NAME)

test-all: $(READY) ## Run the tests on every Python and Scrapy of the matrix in setup.cfg
	$(BIN)/tox

clean: ## Remove what was built and installed here
	rm -rf $(VENV) .tox build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# Made anew when what it is made from changes.
$(READY): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@echo "Setting up $(VENV); this takes a minute the first time."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
