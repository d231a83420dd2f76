"""Shared by all tests."""

from __future__ import annotations

import pytest

# The suites are plain modules: their asserts should be as telling as those of test modules.
pytest.register_assert_rewrite("contract", "support")
