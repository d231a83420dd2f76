"""Shared by all tests."""

from __future__ import annotations

import signal

import pytest

# The suites are plain modules: their asserts should be as telling as those of test modules.
pytest.register_assert_rewrite("contract", "support")

# A shell starts its background jobs with Ctrl-C ignored, and they pass that on. The commands that
# tests interrupt would then never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
