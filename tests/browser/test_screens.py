"""Every screen of the dashboard in a real browser, while a fleet is at work."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, expect

from browser.fleet import CONFIG, MEMBERS, PRICES, Fleet
from browser.hostile import EVIL, EVIL_URL, WORKER, Hostile, stage
from browser.windows import PHONE, POLL_MS, WIDE, Watched
from support.processes import Folder
from support.sites import serving
from support.web import Web, serving_web

TABS = ("", "/hosts", "/workers", "/failures", "/active", "/items", "/rules")
MAIN = ("/", "/?q=nothing", "/workers", "/hosts", "/hosts?order=failing", "/schedules", "/alerts")
OWN = (*MAIN, "/explain", "/login", "/crawls/nothing")
STAGED = (
    *(f"/crawls/{PRICES}{tab}" for tab in (*TABS, "?span=1h", "?span=24h", "/seed")),
    *(f"/crawls/{MEMBERS}{tab}" for tab in ("", "/exits", "/sessions")),
    *(f"/crawls/{name}" for name in ("news", "catalogue", "legacy", "import-2027")),
)
ASKING = ("/seed", "/cancel", "/dead/retry?all=1", "/dead/purge?kind=handler")
EXPECTED = {"/crawls/nothing": "the server responded with a status of 404"}

Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module")
def hostile(folder: Folder) -> Hostile:
    return stage(folder, "shop")


@pytest.fixture(scope="module")
def served(folder: Folder, hostile: Hostile) -> Iterator[Web]:
    folder.write("shoal.toml", CONFIG)
    fleet = Fleet.of(folder, guests=[(hostile.crawl, WORKER)])
    with serving_web(folder) as server, serving(fleet):
        yield server


def screens(hostile: Hostile) -> list[str]:
    own = [hostile.place + tab for tab in (*TABS, *ASKING)]
    return [*OWN, *STAGED, *own, hostile.explained]


def windows(
    browser: Browser, served: Web, width: int, scheme: Scheme = "light"
) -> Iterator[Watched]:
    context = browser.new_context(
        viewport={"width": width, "height": 850}, color_scheme=scheme, reduced_motion="reduce"
    )
    watched = Watched(context, served.base, is_fast=True)
    yield watched
    context.close()
    assert watched.wrong == []


@pytest.fixture
def window(browser: Browser, served: Web) -> Iterator[Watched]:
    yield from windows(browser, served, WIDE)


def open_quietly(window: Watched, path: str) -> None:
    """Open a screen, and look again once. It may say of itself that it is not there."""
    page = window.open(path)
    window.look_again()
    assert page.locator("h1").count() == 1, path
    expected = EXPECTED.get(path)
    window.wrong = [said for said in window.wrong if not (expected and expected in said)]
    assert window.wrong == [], path


def test_no_screen_runs_what_was_crawled_or_asks_elsewhere(
    window: Watched, hostile: Hostile
) -> None:
    for path in screens(hostile):
        open_quietly(window, path)
        assert window.page.locator("main script, main img").count() == 0, path


def test_hostile_words_are_shown_as_words(window: Watched, hostile: Hostile) -> None:
    shown = EVIL.replace("\u202e", "\\u202e").replace("\x1b", "\\x1b").replace("\u2066", "\\u2066")
    page = window.open(f"{hostile.place}/failures")
    assert page.locator("h1 bdi").inner_text() == f"shop {shown}"
    assert page.title() == f"shop {shown} · Shoal"
    links = page.locator("a.out").evaluate_all(
        "links => links.map((link) => [link.rel, link.protocol, link.textContent])"
    )
    assert ["noreferrer noopener", "https:", EVIL_URL] in links
    assert {(rel, protocol) for rel, protocol, _ in links} == {("noreferrer noopener", "https:")}
    page.locator("li summary").first.click()
    assert shown in page.locator("details pre").first.inner_text()
    for tab, where in (("/workers", "td bdi"), ("/active", "td:nth-child(2) bdi")):
        page = window.open(hostile.place + tab)
        assert page.locator(where).first.inner_text() == shown
        window.look_again()  # From now on it is what the script has put there.
        assert page.locator(where).first.inner_text() == shown
    item = window.open(f"{hostile.place}/items").locator("pre").inner_text()
    assert "<script>alert(2)</script>" in item
    assert "\u202e" not in item


def test_a_phone_shows_it_all_without_scrolling_sideways(
    browser: Browser, served: Web, hostile: Hostile
) -> None:
    for window in windows(browser, served, PHONE):
        for path in ("/", f"{hostile.place}/failures", f"/crawls/{PRICES}/hosts"):
            open_quietly(window, path)
            assert width_of(window) <= PHONE, path


def test_an_open_page_notices_the_first_crawl(browser: Browser, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with serving_web(folder) as server:
        for window in windows(browser, server, WIDE):
            page = window.open("/")
            expect(page.locator(".first")).to_contain_text("shoal crawl spider.py")
            stage(folder, "shop")
            window.page.clock.run_for(POLL_MS)
            expect(page.locator("tbody a")).to_contain_text("shop")
            expect(page.locator(".first")).to_be_hidden()


def test_what_is_cut_off_is_told_to_who_points_at_it(window: Watched, hostile: Hostile) -> None:
    cell = window.open("/").locator("tbody tr", has_text="shop <img").locator("td").first
    cell.hover()
    assert cell.get_attribute("title") == cell.locator("bdi").inner_text()


@pytest.mark.rare
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [PHONE, WIDE])
def test_every_screen_fits_and_can_be_read(
    browser: Browser, served: Web, hostile: Hostile, width: int, scheme: Scheme
) -> None:
    """Nothing is wider than the window, and all text has the contrast that WCAG AA asks for."""
    for window in windows(browser, served, width, scheme):
        for path in screens(hostile):
            open_quietly(window, path)
            assert width_of(window) <= width, path
            assert window.page.evaluate(CUT_OFF) == [], path
            assert window.page.evaluate(TOO_PALE) == [], path


def width_of(window: Watched) -> int:
    """How wide the page is, with what can only be seen by scrolling sideways."""
    return int(window.page.evaluate("document.documentElement.scrollWidth"))


CUT_OFF = """[...document.querySelectorAll(".scroll")]
  .filter((table) => table.scrollWidth > table.clientWidth)
  .map((table) => table.getAttribute("aria-label"))"""
"""Tables that can only be seen by scrolling sideways."""
TOO_PALE = (files("browser") / "too_pale.js").read_text("utf-8")
