"""Which of several flavours of a test every change needs."""

from __future__ import annotations

from typing import Any

import pytest


def first_then_rare(first: Any, *others: Any) -> list[Any]:
    """Parameters of which only the first is tried by `make test`, and all by `make test-all`."""
    return [first, *(pytest.param(*_values(other), marks=pytest.mark.rare) for other in others)]


def _values(parameters: Any) -> tuple[Any, ...]:
    return parameters if isinstance(parameters, tuple) else (parameters,)
