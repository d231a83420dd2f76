"""Debian's Chromium, and what it looks at: a real `shoal serve`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from support.processes import Folder
from support.rarely import first_then_rare
from support.redis_servers import RedisServer
from support.server_process import program

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = (
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run"),
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium. Its event loop runs until it is closed: other modules have their own."""
    chromium = program(CHROMIUM)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture(scope="module", params=first_then_rare("sqlite", "redis"))
def folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Folder]:
    """Where `shoal serve` runs; its frontier is a file there, or a Redis."""
    path = tmp_path_factory.mktemp("browser")
    if request.param == "sqlite":
        yield Folder(path)
        return
    with RedisServer(path / "redis", "--appendonly", "yes") as redis:
        yield Folder(path, {"SHOAL_FRONTIER": redis.url})
