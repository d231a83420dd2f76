# Everything runs from a bare Debian 12 with Python 3.11 and make; each target does its own set-up.
PY := .venv/bin/python
PYTEST := $(PY) -m pytest
# Tests start commands by the hundred. Modules are compiled once, whatever the machine's default is.
export PYTHONDONTWRITEBYTECODE :=
# These look at the time or the memory of whole crawls, so nothing else runs beside them.
BESIDE := tests/chaos/test_scrapy_% tests/chaos/test_coordinators.py tests/chaos/test_chains.py \
	tests/chaos/test_catalogue_kills.py tests/integration/test_crawl_again.py
ALONE := $(filter-out $(BESIDE),$(wildcard tests/chaos/test_*.py tests/integration/test_crawl_*.py))

.DEFAULT_GOAL := help
.PHONY: help setup demo check test bench bench-quick clean

help:  ## list what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/.ready  ## make .venv with all that development needs

.venv/.ready: pyproject.toml scripts/setup
	@scripts/setup
	@touch $@

demo: setup  ## serve a local shop and crawl it with several workers
	@.venv/bin/shoal demo

check: setup  ## format, lint, types and unit tests: under a minute
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(PYTEST) -q -n 2 tests/unit

test: setup  ## everything: check, then contract, integration, chaos and docs tests
	@scripts/servers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(PYTEST) -n 3 --dist loadfile --durations=15 $(addprefix --ignore=,$(ALONE)) tests
	$(PYTEST) --durations=15 $(ALONE)

bench: setup  ## Shoal beside scrapy-redis, Scrapy, Crawlee and a bare loop: 20 minutes
	@scripts/servers
	$(PY) -m benchmarks

bench-quick: setup  ## the headline ratios of bench: two minutes
	@scripts/servers
	$(PY) -m benchmarks --quick

clean:  ## remove what the other targets made
	rm -rf .venv .scrapy-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/out dist
