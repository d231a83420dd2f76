"""Steering crawls from a real browser: what is done is seen by the command line, and the other way
round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.fleet import CONFIG
from browser.hostile import DEAD, PAGES, Hostile, stage
from browser.windows import WIDE, Watched, apart, apart_run
from shoal.frontier.port import Frontier
from shoal.frontier.values import Control, Stats
from support.processes import Folder
from support.web import Web, serving_web

_numbers = count(1)


@pytest.fixture(scope="module")
def served(folder: Folder) -> Iterator[Web]:
    folder.write("shoal.toml", CONFIG)
    with serving_web(folder) as server:
        yield server


@pytest.fixture
def hostile(folder: Folder) -> Hostile:
    """A crawl of the test's own."""
    return stage(folder, f"shop {next(_numbers)}")


@pytest.fixture
def window(browser: Browser, served: Web) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": WIDE, "height": 850})
    watched = Watched(context, served.base)
    yield watched
    context.close()
    assert watched.wrong == []


def stats_of(folder: Folder, hostile: Hostile) -> Stats:
    return apart(lambda: folder.stats(hostile.crawl))


def test_what_is_done_in_the_browser_is_seen_by_the_command_line_and_back(
    window: Watched, folder: Folder, hostile: Hostile
) -> None:
    page = window.open(hostile.place)
    state, pause = page.locator("h1 .badge"), page.get_by_role("button", name="Pause")
    resume = page.get_by_role("button", name="Resume")
    expect(resume).to_be_disabled()
    pause.click()
    expect(state).to_have_text("paused")
    told = apart(lambda: folder.shoal("status", hostile.crawl, "--json"))
    assert told.json()["state"] == "paused"
    expect(pause).to_be_disabled()
    where = resume.bounding_box()
    assert apart(lambda: folder.shoal("resume", hostile.crawl)).code == 0
    expect(state).to_have_text("running")  # Nobody has reloaded it.
    expect(pause).to_be_enabled()
    expect(resume).to_be_disabled()
    assert resume.bounding_box() == where  # Whoever aims at it hits it, and nothing else.


def test_retry_by_filter_has_the_exact_count(
    window: Watched, folder: Folder, hostile: Hostile
) -> None:
    page = window.open(f"{hostile.place}/failures?kind=handler")
    page.get_by_role("link", name=f"Retry {DEAD} matching…").click()
    expect(page.locator("h1")).to_contain_text(f"Retry {DEAD} dead tasks of kind handler?")
    assert stats_of(folder, hostile).dead == DEAD
    _cannot_press_twice(page, f"Retry {DEAD}")
    page.get_by_role("button", name=f"Retry {DEAD}").click()
    expect(page.locator(".did")).to_have_text(f"{DEAD} tasks queued again.")
    assert stats_of(folder, hostile).dead == 0


def _cannot_press_twice(page: Page, name: str) -> None:
    """A button that was pressed cannot be pressed again on the same page."""
    page.route("**/dead/retry", lambda route: route.fulfill(status=204))  # The page stays.
    button = page.get_by_role("button", name=name)
    button.click()
    expect(button).to_be_disabled()
    page.unroute("**/dead/retry")
    page.reload()


@pytest.mark.rare
def test_selected_ones_are_purged(window: Watched, folder: Folder, hostile: Hostile) -> None:
    page = window.open(f"{hostile.place}/failures")
    for number in (0, 1):
        page.locator("input[name=fp]").nth(number).check()
    page.get_by_role("button", name="Purge selected…").click()
    page.get_by_role("button", name="Purge 2").click()
    expect(page.locator(".did")).to_have_text("2 tasks dropped.")
    assert stats_of(folder, hostile).dead == DEAD - 2


@pytest.mark.rare
def test_what_another_operator_did_meanwhile_is_said(
    window: Watched, folder: Folder, hostile: Hostile
) -> None:
    page = window.open(f"{hostile.place}/dead/purge?all=1")
    assert apart(lambda: folder.shoal("dead", "retry", hostile.crawl)).code == 0
    page.get_by_role("button", name=f"Purge {DEAD}").click()
    expect(page.get_by_role("alert")).to_have_text(
        f"It was {DEAD} when you were asked. It is 0 now."
    )
    window.wrong = [said for said in window.wrong if "409" not in said]  # The page is one.


@pytest.mark.rare
def test_an_open_page_notices_that_its_crawl_is_forgotten(
    window: Watched, folder: Folder, hostile: Hostile
) -> None:
    async def forget(frontier: Frontier) -> None:
        await frontier.control(hostile.crawl, Control.CANCEL)
        await frontier.forget(hostile.crawl)

    page = window.open(hostile.place)
    window.has_status("live")
    apart_run(folder.ask_frontier(forget))
    expect(page.locator("h1")).to_have_text("Not Found")
    assert all("status of 404" in said for said in window.wrong)
    window.wrong = []


@pytest.mark.rare
def test_a_test_of_alerts(window: Watched) -> None:
    page = window.open("/alerts")
    page.get_by_role("button", name="Send a test by ops").click()
    expect(page.locator("dl.rows dd")).to_have_text("delivered")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("button", name="Send a test by pager").click()
    expect(page.locator("dl.rows dd")).to_have_text("not delivered: false: exit code 1")


@pytest.mark.rare
def test_without_scripts(browser: Browser, served: Web, folder: Folder, hostile: Hostile) -> None:
    context = browser.new_context(java_script_enabled=False)
    watched = Watched(context, served.base)
    page = watched.open(hostile.place)
    assert page.locator("dl.figures").first.inner_text().startswith(f"Total\n{PAGES}")
    page.get_by_role("button", name="Pause").click()
    assert page.locator("h1 .badge").inner_text() == "paused"
    page.get_by_role("link", name="Failures").click()
    page.locator("li summary").first.click()
    assert page.locator("details pre").first.is_visible()
    page.get_by_role("link", name="Cancel…").click()
    assert f"{PAGES - DEAD} tasks will be dropped" in page.locator("h1").inner_text()
    page.get_by_role("button", name="Cancel the crawl").click()
    assert page.locator("h1 .badge").inner_text() == "cancelled"
    assert page.locator(".did").inner_text() == f"Cancelled: {PAGES - DEAD} tasks dropped."
    context.close()
    assert watched.wrong == []
    assert str(stats_of(folder, hostile).state) == "cancelled"


@pytest.mark.rare
def test_by_keyboard_alone(window: Watched, folder: Folder, hostile: Hostile) -> None:
    page = window.open("/")
    page.keyboard.press("Tab")
    assert _focused(page) == "Skip to the content"
    _tab_to(page, hostile.crawl.partition("<")[0])
    page.keyboard.press("Enter")
    page.wait_for_url("**/crawls/shop*")
    _tab_to(page, "Export")
    page.keyboard.press("Enter")
    _tab_to(page, "JSONL")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    _tab_to(page, "Failures")
    page.keyboard.press("Enter")
    page.wait_for_url("**/failures")
    _tab_to(page, "", "checkbox")
    page.keyboard.press("Space")
    _tab_to(page, "Traceback")
    page.keyboard.press("Enter")
    expect(page.locator("details pre").first).to_be_visible()
    _tab_to(page, "Retry selected…", backwards=True)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Retry 1 dead task?")
    _tab_to(page, "Retry 1")
    page.keyboard.press("Enter")
    expect(page.locator(".did")).to_have_text("1 task queued again.")
    assert stats_of(folder, hostile).dead == DEAD - 1


def _focused(page: Page) -> str:
    return str(page.evaluate("document.activeElement.textContent.trim()"))


def _tab_to(page: Page, text: str, kind: str = "", *, backwards: bool = False) -> None:
    """Press Tab until something that begins like this has the focus. All that gets it shows it."""
    for _ in range(200):
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        is_kind = not kind or page.evaluate("document.activeElement.type") == kind
        if is_kind and _focused(page).startswith(text):
            return
    raise AssertionError(f"nothing that begins with {text!r} got the focus")
