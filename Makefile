# Everything runs from a bare Debian 12 with Python 3.11 and make; each target does its own set-up.
PY := .venv/bin/python
PYTEST := $(PY) -m pytest
# Tests start hundreds of commands. Compiled modules are kept, even if the environment forbids that.
export PYTHONDONTWRITEBYTECODE :=
# Test files are distributed over four processes. Tests marked `alone` run afterwards, by themselves.
BESIDE := -n 4 --dist loadfile --durations=15
ALONE := --durations=15
# Rewriting asserts takes each of those processes 8 s after a clone. It is done once, while the types
# are checked, which takes one core.
COMPILE = $(PYTEST) --collect-only -qq -p no:cacheprovider tests >/dev/null 2>&1 &

.DEFAULT_GOAL := help
.PHONY: help setup demo check test test-all test-deploy bench bench-quick clean

help:  ## list what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/.ready  ## make .venv with all that development needs

# The demo needs only the core, which takes seconds. Development tools are added to it.
.venv/.core: pyproject.toml scripts/setup
	@scripts/setup core
	@touch $@

.venv/.ready: .venv/.core
	@scripts/setup development
	@touch $@

.scrapy-oldest/.ready: .venv/.ready
	@scripts/setup oldest
	@touch $@

# Without npm or its registry, all other tests still run. In CI, the test that needs it fails.
.bullmq/.ready: scripts/setup
	-@scripts/setup bullmq && touch $@

.deploy/.ready: .venv/.ready scripts/setup pyproject.toml
	@scripts/setup deploy
	@touch $@

demo: .venv/.core  ## serve a local shop and crawl it with several workers
	@.venv/bin/shoal demo
	@command -v shoal >/dev/null || echo "The commands above begin with .venv/bin/shoal here."

check: setup  ## format, lint, types and unit tests: under a minute
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy
	$(PYTEST) -q -n 2 -m "not rare" tests/unit

# Without rights or a registry to install servers from, the tests of those that are missing skip, by
# name. In CI they fail.
test: setup  ## format, lint, types, and the tests that every change needs: minutes
	-@scripts/servers
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	@$(COMPILE)
	.venv/bin/mypy
	$(PYTEST) $(BESIDE) -m "not rare and not alone and not deploy" tests
	$(PYTEST) $(ALONE) -m "alone and not rare" tests

test-all: setup .scrapy-oldest/.ready .bullmq/.ready  ## what make test leaves out: long ones, second flavours, property tests in full
	-@scripts/servers
	$(PYTEST) $(BESIDE) --hypothesis-profile=full -m "(rare or hypothesis) and not alone" tests
	$(PYTEST) $(ALONE) -m "rare and alone" tests

test-deploy: setup .deploy/.ready  ## build the image, crawl in containers, check deploy/: minutes, as root
	-@scripts/servers
	$(PYTEST) --durations=15 -m deploy tests

bench: setup  ## Shoal beside scrapy-redis, Scrapy, Crawlee and a bare loop: half an hour
	@scripts/servers
	$(PY) -m benchmarks

bench-quick: setup  ## the headline ratios of bench: two minutes
	@scripts/servers
	$(PY) -m benchmarks --quick

clean:  ## remove what the other targets made
	rm -rf .venv .deploy .scrapy-oldest .bullmq .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/out dist
