"""A file whose appearance ends the work."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from shoal.runtime.services import Services
from shoal.runtime.stop_file import StopFile
from support.until import in_time


async def test_it_ends_when_the_file_is_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "stop"
    running = asyncio.create_task(StopFile(file).run())
    await asyncio.sleep(0)
    assert not running.done()
    file.touch()
    await in_time("the end", running)
    assert f"{file} is there" in caplog.text


async def test_those_beside_it_are_drained(tmp_path: Path) -> None:
    (file := tmp_path / "stop").touch()
    others = StopFile(tmp_path / "never")
    await in_time("the end", Services(others, StopFile(file)).run())


async def test_it_is_told_to_stop_as_well(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    waiting = StopFile(tmp_path / "\ud800" / ("x" * 5_000))  # A name that no system takes.
    running = asyncio.create_task(waiting.run())
    await asyncio.sleep(0)
    waiting.drain()
    await in_time("the end", running)
    assert caplog.text == ""
