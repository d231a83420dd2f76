"""The dashboard's pages of a real `shoal serve`, as a browser without scripts gets them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from html import unescape
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
import pytest

from contract.results_suite import some_item
from shoal.config import Rules
from shoal.coordinator.run_requests import RUN_KEYS
from shoal.core.failures import FailureKind
from shoal.core.ledger import SlotTime, Work
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.causes import LOOKED_AT
from shoal.frontier.feeding import FEEDS, FeedPulse
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Control, DeadFilter, Outcome, Pulse, Verdict
from shoal.web.screens.crawl_tasks import SHOWN
from shoal.web.screens.crawls import LOOKED_INTO
from support.coordinators import NEVER, SCHEDULE
from support.processes import Folder
from support.receivers import Receiver
from support.redis_servers import RedisServer
from support.sites import serving
from support.stored import Stored
from support.until import until_now
from support.web import Answered, Web, serving_web

T = TypeVar("T")

SHOP = "shop"
RULES = Rules(rate="none", robots=False)
PAGE = {"Accept": "text/html"}
FORM = {
    **PAGE,
    "Content-Type": "application/x-www-form-urlencoded",
    "Sec-Fetch-Site": "same-origin",
}
FIVE = [f"https://a.example/{number}" for number in range(5)]
HUGE, MUCH = 10 * 1024 * 1024, 50_000


def form(server: Web, path: str, **fields: str) -> Answered:
    """Press the button of a form."""
    return server.send("POST", path, urlencode(fields).encode(), FORM)


def text_of(answer: Answered) -> str:
    """What a page says below its head."""
    main = answer.body.decode().partition("<main")[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", main))


def asked_count(answer: Answered) -> str:
    """The count that a confirm page sends back."""
    found = re.search(rb'name="count" value="(\d+)"', answer.body)
    assert found, answer
    return found[1].decode()


def hidden_fields(answer: Answered) -> dict[str, str]:
    """What a confirm page sends back."""
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', answer.body.decode())
    return dict(found)


async def add(frontier: Frontier, crawl: str, *urls: str, rules: Rules = RULES) -> None:
    await frontier.start(crawl, rules)
    await frontier.add(crawl, [Admission(rules).admit(Task(url=url)) for url in urls])


async def kill(frontier: Frontier, crawl: str, count: int, detail: str = "") -> None:
    """Have some tasks die."""
    leases = (await frontier.lease(crawl, Ask("worker", count))).leases
    outcomes = [
        Outcome(
            lease=lease,
            verdict=Verdict.DEAD,
            kind=FailureKind.HANDLER,
            reason="ValueError: " + "x" * len(detail),
            detail=detail,
        )
        for lease in leases
    ]
    await frontier.finish(crawl, outcomes)


def do(folder: Folder, call: Callable[[Frontier], Awaitable[T]]) -> T:
    return asyncio.run(folder.ask_frontier(call))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("screens"))


@pytest.fixture(scope="module")
def heard() -> Iterator[Receiver]:
    with serving(Receiver()) as receiver:
        yield receiver


@pytest.fixture(scope="module")
def served(folder: Folder, heard: Receiver) -> Iterator[Web]:
    routes = f"""
    [alerts.routes.ops]
    kind = "webhook"
    url = "{heard.url}/hunter2"
    [alerts.routes.pager]
    kind = "command"
    command = ["false"]
    """
    folder.write("shoal.toml", SCHEDULE.format(cron=NEVER, more="") + routes)
    with serving_web(folder) as server:
        yield server


@pytest.mark.parametrize("chosen", [{"all": "1"}, {"kind": "handler"}], ids=str)
@pytest.mark.parametrize("action", ["retry", "purge"])
def test_what_dies_after_the_question_is_not_meant(
    served: Web, folder: Folder, action: str, chosen: dict[str, str]
) -> None:
    crawl = f"dying-{action}-{'-'.join(chosen)}"
    do(folder, lambda frontier: add(frontier, crawl, *FIVE))
    do(folder, lambda frontier: kill(frontier, crawl, 2))
    path = f"/crawls/{crawl}/dead/{action}"
    asked = hidden_fields(served.get(f"{path}?{urlencode(chosen)}", PAGE))
    assert asked["count"] == "2"
    do(folder, lambda frontier: kill(frontier, crawl, 1))

    done = form(served, path, **asked)

    assert done.headers["Location"].endswith("&count=2")
    assert "2 tasks " in text_of(served.get(done.headers["Location"], PAGE))
    assert folder.stats(crawl).dead == 1
    again = form(served, path, **asked)  # Somebody pressed twice.
    assert (again.status, asked_count(again), folder.stats(crawl).dead) == (409, "1", 1)


def test_a_confirm_page_notices_that_there_are_fewer(served: Web, folder: Folder) -> None:
    async def retry_newest(frontier: Frontier) -> None:
        newest, *_ = await frontier.dead("stale", 1)
        await frontier.retry_dead("stale", DeadFilter(fingerprints=[newest.fingerprint]))

    do(folder, lambda frontier: add(frontier, "stale", *FIVE))
    do(folder, lambda frontier: kill(frontier, "stale", 3))
    path = "/crawls/stale/dead/retry"
    asked = hidden_fields(served.get(f"{path}?all=1", PAGE))
    do(folder, retry_newest)

    late = form(served, path, **asked)

    assert (late.status, asked_count(late)) == (409, "2")
    assert "It was 3 when you were asked. It is 2 now." in text_of(late)
    assert folder.stats("stale").dead == 2
    assert form(served, path, **asked | {"until": "nan"}).status == 400
    done = form(served, path, **hidden_fields(late))
    assert done.headers["Location"].endswith("did=retried&count=2")


def test_nobody_purges_without_having_been_asked(served: Web, folder: Folder) -> None:
    do(folder, lambda frontier: add(frontier, "unasked", "https://a.example/"))
    do(folder, lambda frontier: kill(frontier, "unasked", 1))

    assert form(served, "/crawls/unasked/dead/purge", all="1").status == 409
    assert form(served, "/crawls/unasked/dead/purge", count="1").status == 400
    assert folder.stats("unasked").dead == 1


def test_who_has_selected_nothing_finds_back(served: Web, folder: Folder) -> None:
    do(folder, lambda frontier: add(frontier, "unselected", "https://a.example/"))
    tab = "/crawls/unselected/failures?kind=handler"
    answer = served.get("/crawls/unselected/dead/retry", {**PAGE, "Referer": served.base + tab})
    assert (answer.status, "no task was selected" in text_of(answer)) == (400, True)
    assert f'href="{tab}">Back'.encode() in answer.body


def test_a_crawl_that_was_started_over_is_another_one(served: Web, folder: Folder) -> None:
    async def start_over(frontier: Frontier) -> None:
        await frontier.forget("over")
        await add(frontier, "over", "https://a.example/", "https://a.example/2")

    do(folder, lambda frontier: add(frontier, "over", "https://a.example/"))
    page = served.get("/crawls/over/cancel", PAGE)
    assert "1 task will be dropped" in text_of(page)
    found = re.search(rb'name="made" value="([^"]+)"', page.body)
    assert found is not None
    do(folder, start_over)

    refused = form(served, "/crawls/over/cancel", made=found[1].decode())

    assert (refused.status, folder.stats("over").waiting) == (409, 2)
    page = served.get("/crawls/over/cancel", PAGE)
    found = re.search(rb'name="made" value="([^"]+)"', page.body)
    assert found is not None
    done = form(served, "/crawls/over/cancel", made=found[1].decode())
    assert done.headers["Location"] == "/crawls/over?did=cancelled&count=2"
    assert served.get("/crawls/over/cancel", PAGE).status == 409


def test_two_operators_at_once(served: Web, folder: Folder) -> None:
    do(folder, lambda frontier: add(frontier, "two", "https://a.example/"))

    assert [form(served, "/crawls/two/pause").status for _ in range(2)] == [303, 303]
    assert str(folder.stats("two").state) == "paused"
    assert [form(served, "/crawls/two/resume").status for _ in range(2)] == [303, 303]
    assert str(folder.stats("two").state) == "running"


def test_a_traceback_of_any_length_is_shown_from_its_end(served: Web, folder: Folder) -> None:
    detail = f"first {'x' * HUGE} ValueError: last"
    do(folder, lambda frontier: add(frontier, "huge", "https://a.example/"))
    do(folder, lambda frontier: kill(frontier, "huge", 1, detail))
    explain = urlencode({"crawl": "huge", "url": "https://a.example/"})

    for path in ("/crawls/huge/failures", f"/explain?{explain}"):
        answer = served.get(path, PAGE)
        assert (answer.status, len(answer.body) < MUCH) == (200, True), path
        assert "ValueError: last" in answer.body.decode()


def test_what_tasks_died_of_is_counted(served: Web, folder: Folder) -> None:
    many = LOOKED_AT + 1
    urls = [f"https://a.example/{number}" for number in range(many)]
    do(folder, lambda frontier: add(frontier, "caused", *urls))
    for _ in range(0, many, 100):
        do(folder, lambda frontier: kill(frontier, "caused", 100))

    page = served.get("/crawls/caused/failures", PAGE)
    told = text_of(page)

    assert b'data-text="failed" data-kind="bad">1,001' in page.body
    died = told[told.index("What tasks died of") : told.index("Dead tasks")]
    assert "ValueError: 1,000" in " ".join(died.split())
    assert "Of the last 1,000 dead tasks." in died


def test_seeds_that_are_wrong_are_told_beside_those_that_were_added(
    served: Web, folder: Folder
) -> None:
    do(folder, lambda frontier: add(frontier, "seeded", "https://a.example/1"))
    lines = "https://a.example/1\r\nhttps://a.example/2\r\nnothing\r\n"

    answer = form(served, "/crawls/seeded/seed", seeds=lines)

    assert "1 added, 1 known already, 1 wrong:" in text_of(answer)
    assert "line 3:" in text_of(answer)
    assert b"https://a.example/2\r\nnothing" in answer.body
    good = form(served, "/crawls/seeded/seed", seeds="https://a.example/2\r\nhttps://a.example/3")
    told = text_of(served.get(good.headers["Location"], PAGE))
    assert "1 task added. 1 known already." in told


def test_an_alert_is_tried_from_its_page(served: Web, heard: Receiver) -> None:
    page = served.get("/alerts", PAGE)
    assert "ops webhook" in text_of(page)
    assert b"hunter2" not in page.body

    good, bad = (form(served, "/alerts/test", route=route) for route in ("ops", "pager"))

    assert "ops delivered" in text_of(good)
    assert heard.received[-1].json()["title"] == "Shoal: this is a test"
    assert "pager not delivered: false: exit code 1" in text_of(bad)
    assert b"hunter2" not in good.body + bad.body
    assert form(served, "/alerts/test", route="other").status == 404


def test_a_run_is_asked_for_once_by_one_page(served: Web, folder: Folder) -> None:
    def asked_runs() -> int:
        return len(do(folder, lambda frontier: frontier.notes.all(RUN_KEYS)))

    found = re.search(rb'name="key" value="(\w+)"', served.get("/schedules", PAGE).body)
    assert found is not None
    answers = [form(served, "/schedules/shop/run", key=found[1].decode()) for _ in range(2)]
    assert asked_runs() == 1
    form(served, "/schedules/shop/run", key="of another page")
    assert asked_runs() == 2
    assert "A run was asked for." in text_of(served.get(answers[1].headers["Location"], PAGE))


def test_what_is_left_out_is_said(served: Web, folder: Folder) -> None:
    async def begin_many(frontier: Frontier) -> None:
        for number in range(LOOKED_INTO + 1):
            await frontier.start(f"many-{number}", RULES)

    async def end_them(frontier: Frontier) -> None:
        for number in range(LOOKED_INTO + 1):
            await frontier.control(f"many-{number}", Control.CANCEL)

    do(folder, begin_many)
    for path in ("/workers", "/hosts"):
        assert f"Of the newest {LOOKED_INTO} of" in text_of(served.get(path, PAGE)), path
    do(folder, end_them)


def test_items_go_page_by_page(served: Web, folder: Folder) -> None:
    keys = [f"item-{number:03}" for number in range(2 * SHOWN + 1)]
    do(folder, lambda frontier: add(frontier, "items", "https://a.example/"))
    Stored(folder.path).save("items", *(some_item(key, kind="lamp & co") for key in keys))
    place, found, sizes = "/crawls/items/items?kind=lamp+%26+co", list[str](), list[int]()
    while place:
        shown = served.get(place, PAGE).body.decode()
        on_page = re.findall(r"<b><bdi>(item-\d+)</bdi></b>", shown)
        assert f"{len(on_page)} of {len(keys)}." in shown
        sizes.append(len(on_page))
        found += on_page
        after = re.search(r'<a href="([^"]+)" rel="next">', shown)
        place = unescape(after[1]) if after else ""

    assert (sizes, found) == ([SHOWN, SHOWN, 1], keys)
    assert served.get("/crawls/items/items?cursor=nonsense", PAGE).status == 400


def test_a_crawl_that_nobody_works_on_says_what_to_do(served: Web, folder: Folder) -> None:
    seeds = [Admission(RULES).admit(Task(url="https://a.example/"))]
    do(folder, lambda frontier: frontier.add("left here", seeds))
    told = text_of(served.get("/crawls/left%20here", PAGE))
    assert "Its seeds wait for: shoal crawl spider.py --name 'left here'" in unescape(told)
    do(folder, lambda frontier: frontier.start("left here", RULES))
    until_now(
        "advice to go on with it",
        lambda: "Go on with it: shoal crawl" in text_of(served.get("/crawls/left%20here", PAGE)),
    )


def test_an_overview_says_what_status_says(served: Web, folder: Folder) -> None:
    rules = msgspec.structs.replace(RULES, max_pages_per_shape=1)
    admission = Admission(rules)
    feed = FeedPulse(crawl="noted", address="redis://h?key=q", at=time.time(), added=3)
    waiting = Work(slots=SlotTime(polite=60.0))
    pulse = Pulse(worker="w", host="h", pid=1, version="1", lately=waiting)

    async def begin(frontier: Frontier) -> None:
        await add(frontier, "noted", *FIVE, rules=rules)
        lease = (await frontier.lease("noted", Ask("w", 1))).leases[0]
        links = [
            admission.admit(Task(url=f"https://a.example/day/{day}"), found_on="a.example")
            for day in range(4)
        ]
        await frontier.finish(
            "noted", [Outcome(lease=lease, verdict=Verdict.DONE, follow_ups=links)]
        )
        await frontier.beat("noted", pulse)
        await frontier.notes.write(FEEDS, "noted/1", msgspec.json.encode(feed))

    do(folder, begin)
    told = unescape(text_of(served.get("/crawls/noted", PAGE)))
    terminal = folder.shoal("status", "noted").out

    for line in (
        "slow: a.example busy (16 at once)",
        "more than 1 pages like /day/N of a.example: 3 links not followed",
        "feed redis://h?key=q: 3 added",
    ):
        assert line in told
        assert line in terminal


def test_rules_show_what_a_spider_was_told_without_its_secrets(served: Web, folder: Folder) -> None:
    args = {"language": "\u202efr", "password": "hunter2"}
    rules = msgspec.structs.replace(RULES, args=args)
    do(folder, lambda frontier: frontier.start("told", rules))
    told = text_of(served.get("/crawls/told/rules", PAGE))
    assert r"args language=\u202efr, password=***" in told
    assert "hunter2" not in told


def test_a_page_without_scripts_does_not_forget_what_was_selected(
    served: Web, folder: Folder
) -> None:
    do(folder, lambda frontier: add(frontier, "still", "https://a.example/"))

    assert b'http-equiv="refresh"' in served.get("/crawls/still", PAGE).body
    assert b'http-equiv="refresh"' not in served.get("/crawls/still/failures", PAGE).body


def test_a_frontier_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis", "--appendonly", "yes") as redis:
        folder = Folder(tmp_path, {"SHOAL_FRONTIER": redis.url})
        with serving_web(folder) as server:
            do(folder, lambda frontier: add(frontier, SHOP, "https://a.example/"))
            assert served_at(server, "/crawls/shop").status == 200
            redis.kill()
            looked = until_now(
                "a page that says so", lambda: _if_away(served_at(server, "/crawls/shop"))
            )
            assert b'<meta http-equiv="refresh" content="5">' in looked.body
            pressed = server.send(
                "POST", "/crawls/shop/pause", b"", {**FORM, "Referer": f"{server.base}/crawls/shop"}
            )
            assert pressed.status == 503
            assert "It was not done, or only in part." in text_of(pressed)
            assert b'href="/crawls/shop">Back' in pressed.body
            assert b"refresh" not in pressed.body
            redis.start()
            until_now("it to be back", lambda: served_at(server, "/crawls/shop").status == 200)
            assert str(folder.stats(SHOP).state) == "running"


def served_at(server: Web, path: str) -> Answered:
    return server.get(path, PAGE)


def _if_away(answer: Answered) -> Answered | None:
    return answer if answer.status == 503 else None
