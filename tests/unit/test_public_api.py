"""What `import shoal` offers: these names, documented, and nothing heavy behind them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import shoal
import shoal.urls

PUBLIC = [
    "TRACKING_PARAMETERS",
    "Catalogue",
    "Drop",
    "Failure",
    "Follow",
    "Item",
    "LoginFailed",
    "Outgoing",
    "Page",
    "Retry",
    "Selection",
    "Session",
    "SessionExpired",
    "ShoalError",
    "Spider",
    "Summary",
    "Task",
    "__version__",
    "crawl",
]
HEAVY = {"parsel", "lxml", "pydantic", "rich", "typer"}


def test_the_public_names_are_these() -> None:
    assert shoal.__all__ == PUBLIC
    assert shoal.__doc__


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("_")])
def test_public_names_are_documented(name: str) -> None:
    thing = getattr(shoal, name)

    assert thing.__doc__
    for member, value in inspect.getmembers(thing) if inspect.isclass(thing) else ():
        if not member.startswith("_") and (
            inspect.isfunction(value) or isinstance(value, property)
        ):
            assert inspect.getdoc(value), f"{name}.{member}"


def test_spiders_find_the_tracking_parameters_where_they_were() -> None:
    assert shoal.urls.TRACKING_PARAMETERS is shoal.TRACKING_PARAMETERS


def test_importing_shoal_is_light() -> None:
    code = "import sys, shoal; print(*{name.partition('.')[0] for name in sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert "shoal" in loaded
    assert HEAVY.isdisjoint(loaded)
