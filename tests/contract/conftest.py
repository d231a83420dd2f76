"""Suites are shared by several test modules: pytest explains their assertions too."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("contract", "support")
