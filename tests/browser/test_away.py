"""What a browser shows while a coordinator or the frontier is away, and of many pages at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.hostile import Hostile, stage
from browser.windows import Watched, apart
from support.coordinators import Office
from support.processes import Folder
from support.redis_servers import RedisServer
from support.web import Web, serving_web


@pytest.fixture(scope="module")
def hostile(folder: Folder) -> Hostile:
    return stage(folder, "shop")


@contextmanager
def window_at(browser: Browser, server: Web) -> Iterator[Watched]:
    """A window that may see errors of its connection: they are what these tests are about."""
    context = browser.new_context()
    yield Watched(context, server.base)
    context.close()


def leader_of(folder: Folder) -> int | None:
    return apart(Office(folder).leader)


@pytest.mark.rare
def test_a_coordinator_is_killed_and_another_takes_over(
    browser: Browser, folder: Folder, hostile: Hostile
) -> None:
    Office(folder).schedule()
    with serving_web(folder) as first:
        apart(lambda: Office(folder).leads(first.process))
        port = first.base.rpartition(":")[2]
        with (
            serving_web(folder) as second,
            window_at(browser, first) as at_first,
            window_at(browser, second) as at_second,
        ):
            at_first.open(hostile.place)
            at_first.has_status("live")
            led = at_second.open("/schedules").locator("[data-text=leader]")
            expect(led).to_contain_text(f":{first.process.pid}-")
            shown = at_first.page.locator("dl.figures").first.inner_text()

            first.process.kill_all()

            at_first.has_status("reconnecting…")
            assert at_first.page.locator("dl.figures").first.inner_text() == shown
            expect(led).to_contain_text(f":{second.process.pid}-")
            assert at_second.wrong == []
            with serving_web(folder, "--listen", f"127.0.0.1:{port}"):
                at_first.has_status("live")


@pytest.mark.rare
def test_the_frontier_goes_away_while_a_page_is_open_and_a_button_is_pressed(
    browser: Browser, tmp_path: Path
) -> None:
    with RedisServer(tmp_path / "redis", "--appendonly", "yes") as redis:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": redis.url})
        hostile = stage(folder, "shop")
        with (
            serving_web(folder) as server,
            window_at(browser, server) as looking,
            window_at(browser, server) as pressing,
        ):
            for window in (looking, pressing):
                window.open(hostile.place)
                window.has_status("live")
            redis.kill()
            looking.has_status("reconnecting…")
            pressing.page.get_by_role("button", name="Pause").click()
            expect(pressing.page.locator("h1")).to_have_text("The stores do not answer")
            expect(pressing.page.locator("main")).to_contain_text(
                "It was not done, or only in part"
            )
            redis.start()
            looking.has_status("live")
            pressing.page.get_by_role("link", name="Back").click()
            expect(pressing.page.locator("h1 .badge")).to_have_text("running")
            pressing.page.get_by_role("button", name="Pause").click()
            expect(looking.page.locator("h1 .badge")).to_have_text("paused")


@pytest.mark.rare
def test_seven_tabs(browser: Browser, folder: Folder, hostile: Hostile) -> None:
    context = browser.new_context()
    with serving_web(folder) as served:
        windows = [Watched(context, served.base) for _ in range(7)]
        for watched in windows:
            watched.open(hostile.place)
        for watched in windows:
            watched.page.bring_to_front()
            watched.has_status("live")
            assert watched.wrong == []
    context.close()
