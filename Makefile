# `make demo` and `make test` install what they need in .venv, and nothing elsewhere.
# PYTHON: the Python for .venv, 3.10 or newer.
# WORKERS: how many tests run at once. Crawl tests wait about as long as they compute.

PYTHON ?= python3
WORKERS ?= 8
# ARGS: more arguments for pytest, in test-select, test-no-reactor and test-oldest.
# Pythons that need not be on the PATH; tox fails at one that is too old for it.
PYENV := $(wildcard $(HOME)/.pyenv/versions/3.1[0-9].*/bin/python)
# The oldest supported Python that is installed and runs: 10 is Python 3.10.
OLDEST = $(firstword $(foreach minor,10 11 12 13 14,$(shell for python in python3.$(minor) \
	$(HOME)/.pyenv/versions/3.$(minor).*/bin/python; do "$$python" -c "" 2>/dev/null && echo $(minor) && break; done)))
# Tests of one group share a browser or a server.
XDIST = -n $(WORKERS) --dist loadgroup
# Otherwise, each of these workers compiles all tests in each run.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
BIN := $(VENV)/bin
TOX = $(BIN)/tox $(if $(PYENV),--discover $(PYENV))
# The name contains the Python version, so that another PYTHON creates a new .venv.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
READY := $(VENV)/ready-$(VERSION)
COMPILED := $(VENV)/compiled-$(VERSION)
# The demo needs only a part of it, and uses the whole if that is there.
DEMO_READY := $(or $(wildcard $(READY)),$(VENV)/ready-for-demo-$(VERSION))

.PHONY: help venv demo test test-select test-no-reactor test-oldest test-all coverage check docs bench clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

venv: $(READY) ## Create .venv with everything for development

demo: $(DEMO_READY) ## Crawl the example site and show what its robots.txt forbids
	@$(BIN)/python example_project/demo.py

test: $(COMPILED) ## Run the tests, crawls with asyncio's reactor
	CRAWL_MODES=$${CRAWL_MODES:-asyncio} $(BIN)/python -m pytest $(XDIST)

test-select: $(COMPILED) ## Run the crawl tests with another reactor than asyncio's
	CRAWL_MODES=select $(BIN)/python -m pytest $(XDIST) $(ARGS) tests/crawls

test-no-reactor: $(COMPILED) ## Run the crawl tests without a reactor
	CRAWL_MODES="no reactor" $(BIN)/python -m pytest $(XDIST) $(ARGS) tests/crawls

test-oldest: $(READY) ## Run the crawl tests on the oldest Scrapy and the oldest installed Python
	@echo "Testing the oldest Scrapy on Python 3.$(OLDEST), the oldest that is installed; 3.10 is the oldest supported."
	$(TOX) -e py3$(OLDEST)-scrapy213 -- $(XDIST) $(ARGS) tests/crawls

coverage: $(COMPILED) ## Run the tests, and fail if they cover less of the package than before
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(XDIST)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: $(READY) docs ## Lint, check types, spelling and workflows, build and test the site and the package
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/codespell
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/*-form.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.readthedocs .readthedocs.yaml
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(BIN)/python -m pytest -n 2 --dist loadfile tests/built

docs: $(READY) ## Build the documentation site in build/site; a link that leads nowhere is an error
	rm -rf build/site
	$(BIN)/sphinx-build --quiet --nitpicky --fail-on-warning --jobs auto docs build/site

bench: $(READY) ## Run a benchmark: make bench NAME=broad (or closed, cost, single, hosts, large, forbidden, polite, throttled, hostile, stores, check, fleet, ask, linear, memory, scale, evidence, readings, soak)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group bench
	$(BIN)/python -m benchmarks $(NAME)

test-all: $(READY) ## Run the tests on every Python and Scrapy of the matrix in setup.cfg
	$(TOX)

clean: ## Remove everything that was built and installed here
	rm -rf $(VENV) .tox .coverage* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# Made anew when what they are made from changes.
$(READY): GROUP = dev
$(VENV)/ready-for-demo-$(VERSION): GROUP = demo
$(READY) $(VENV)/ready-for-demo-$(VERSION): pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed; this is " + sys.version.split()[0] + ". Name another: make PYTHON=python3.12" if sys.version_info < (3, 10) else 0)'
	@echo "Setting up $(VENV); this takes a minute the first time."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --editable . --group $(GROUP)
	@touch $@

# pip would compile all that it installs. Without this, each worker of the first run compiles what is imported.
$(COMPILED): $(READY)
	-@CRAWL_MODES=asyncio $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1
	@touch $@
