"""Shared by all tests."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# The suites are plain modules: their asserts should be as telling as those of test modules.
pytest_plugins = ["support.server_fixtures"]

pytest.register_assert_rewrite("contract", "support")

# A shell starts its background jobs with Ctrl-C ignored, and they pass that on. The commands that
# tests interrupt would then never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Property tests are judged by what they find, never by how fast the machine is. `make test` looks
# for it for a while, `make test-all` for long.
for name, examples in (("quick", 25), ("full", 100)):
    settings.register_profile(
        name, max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")
