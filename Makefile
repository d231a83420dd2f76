# Everything runs from a bare Debian 12 with Python 3.11 and make; each target does its own set-up.
PY := .venv/bin/python
PYTEST := $(PY) -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup demo check test bench clean

help:  ## list what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

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
	$(PYTEST) -q tests/unit

test: setup  ## everything: check, then contract, integration, chaos and docs tests
	@scripts/servers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	@# Two at a time, but for those that look at the time or the memory of whole crawls.
	$(PYTEST) -n 2 --dist loadfile --ignore=tests/chaos --ignore-glob='*/test_crawl_*' tests
	$(PYTEST) tests/chaos tests/integration/test_crawl_*.py

bench: setup  ## Shoal beside a bare aiohttp loop, and the frontier by itself
	@scripts/servers
	$(PY) -m benchmarks

clean:  ## remove what the other targets made
	rm -rf .venv .scrapy-oldest .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/out dist
