"""`explain` on the real stores: who led to a page, also where the frontier has forgotten it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from shoal.core.task import Task
from shoal.frontier import frontier_at
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Control, Entry, Record, Verdict
from shoal.insight.explain import MAX_TASKS, explain
from shoal.insight.explain_rows import explanation_rows
from shoal.results.port import Batch, PageLog, Results
from shoal.results.sqlite.store import SqliteResults
from support.frontiers import CRAWL, Client, entry, open_rules, outcome


class Forgetful(SqliteFrontier):
    """Keeps nothing of tasks that have ended but that they have."""

    async def find(self, crawl: str, entry: Entry) -> Record | None:
        record = await super().find(crawl, entry)
        if record is None or record.state not in ("done", "dropped"):
            return record
        return replace(record, task=entry.task, is_forgotten=True, reason="")


@pytest.fixture(params=[SqliteFrontier, Forgetful])
async def frontier(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Frontier]:
    frontier = request.param(tmp_path / "frontier.db")
    await frontier.start(CRAWL, open_rules())
    yield frontier
    await frontier.close()


@pytest.fixture
async def results(tmp_path: Path) -> AsyncIterator[Results]:
    results = SqliteResults(tmp_path / "results.db")
    yield results
    await results.close()


async def fetch(frontier: Frontier, results: Results, page: Entry, error: str = "") -> None:
    """One try at a page that is the only one waiting."""
    client = Client(frontier, "worker", CRAWL)
    await client.add(page)
    lease = await client.lease_one()
    log = PageLog(
        fingerprint=page.fingerprint,
        url=page.task.url,
        worker="worker",
        attempt=1,
        started_at=1.0,
        duration_s=1.0,
        verdict="done",
        error=error,
        parent=page.task.parent,
    )
    await results.save(CRAWL, Batch([log]))
    assert await client.finish(outcome(lease, Verdict.DONE, reason=error)) == []


async def test_the_way_from_the_seed(frontier: Frontier, results: Results) -> None:
    way = [entry("a.example/seed")]
    for name in ("list", "product"):
        way.append(entry(f"a.example/{name}", parent=way[-1].fingerprint.hex()))
    for page in way:
        await fetch(frontier, results, page)
    waiting = entry("a.example/waiting", parent=way[-1].fingerprint.hex())
    await frontier.add(CRAWL, [waiting])
    urls = [page.task.url for page in way]
    told = await explain(frontier, results, CRAWL, way[-1].task.url)
    assert (told.verdict, told.found_on) == ("done", urls[1::-1])
    told = await explain(frontier, results, CRAWL, waiting.task.url)
    assert (told.verdict, told.found_on) == ("waiting", urls[::-1])
    assert (await explain(frontier, results, CRAWL, urls[0])).found_on == []


async def test_nothing_is_claimed_of_a_task_that_is_forgotten(
    frontier: Frontier, results: Results
) -> None:
    page = entry("a.example/product", job_type="product", depth=2)
    await fetch(frontier, results, page)
    told = dict(explanation_rows(await explain(frontier, results, CRAWL, page.task.url)))
    is_kept = not isinstance(frontier, Forgetful)
    assert told.get("handler") == ("product" if is_kept else None)
    assert told.get("depth, priority") == ("2, 0" if is_kept else None)
    assert told["found on"] == "it is a seed"
    assert "0 items, 0 links" in told["try 1"]


async def test_a_redirect(frontier: Frontier, results: Results) -> None:
    page = entry("a.example/old")
    await fetch(frontier, results, page, "HTTP 301 to http://a.example/new")
    told = await explain(frontier, results, CRAWL, page.task.url)
    assert told.verdict == "done: HTTP 301 to http://a.example/new"


async def test_cancelled_before_anybody_came_to_it(frontier: Frontier, results: Results) -> None:
    page = entry("a.example/")
    await frontier.add(CRAWL, [page])
    await frontier.control(CRAWL, Control.CANCEL)
    told = await explain(frontier, results, CRAWL, page.task.url)
    assert told.verdict.startswith("dropped")


@pytest.mark.parametrize("parent", ["nonsense", "", "abc", "00", "ff" * 40, "00" * 8, "ü"])
async def test_a_parent_that_is_none(frontier: Frontier, results: Results, parent: str) -> None:
    """Tasks may be written by anybody."""
    page = entry("a.example/", parent=parent)
    await fetch(frontier, results, page)
    told = await explain(frontier, results, CRAWL, page.task.url)
    assert (told.verdict, told.found_on) == ("done", [])


async def test_a_page_that_is_its_own_parent(frontier: Frontier, results: Results) -> None:
    page = entry("a.example/")
    page.task.parent = page.fingerprint.hex()
    await fetch(frontier, results, page)
    told = await explain(frontier, results, CRAWL, page.task.url)
    assert set(told.found_on) == {page.task.url}


async def act(
    frontier: Frontier, results: Results, task: Task, verdict: Verdict, reason: str = ""
) -> None:
    """Add a task that goes before all others; try it once, with a page log."""
    task.priority = 9
    page = Admission(open_rules()).admit(task)
    client = Client(frontier, "worker", CRAWL)
    await client.add(page)
    (lease,) = await client.lease(1)
    assert lease.fingerprint == page.fingerprint
    log = PageLog(
        fingerprint=page.fingerprint,
        url=task.url,
        worker="worker",
        attempt=1,
        started_at=1.0,
        duration_s=1.0,
        verdict=verdict,
        error=reason,
    )
    await results.save(CRAWL, Batch([log]))
    assert await client.finish(outcome(lease, verdict, reason=reason)) == []


URL = "https://a.example/search?q=[1]"


@pytest.fixture(params=["sqlite", "redis"])
async def any_frontier(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Frontier]:
    address = f"sqlite:///{tmp_path}/frontier.db"
    if request.param == "redis":
        request.getfixturevalue("raw")
        address = request.getfixturevalue("server").url
    async with frontier_at(address) as frontier:
        await frontier.start(CRAWL, open_rules(concurrency_per_host=9))
        yield frontier


async def test_every_task_at_an_address_is_told_of(
    any_frontier: Frontier, results: Results
) -> None:
    await act(any_frontier, results, Task(url=URL, method="POST", body="dead"), Verdict.DEAD, "x")
    await act(any_frontier, results, Task(url=URL, method="POST", body="done"), Verdict.DONE)
    await act(any_frontier, results, Task(url=URL, method="PUT"), Verdict.DROPPED, "HTTP 404")
    await act(any_frontier, results, Task(url=URL, dont_filter=True), Verdict.DONE)
    waits = Admission(open_rules()).admit(Task(url=URL, dont_filter=True))
    await any_frontier.add(CRAWL, [waits, entry("a.example/search?q=2")])
    told = await explain(any_frontier, results, CRAWL, f"{URL}#fragment")
    verdicts = sorted(one.verdict for one in (told, *told.others))
    assert verdicts == ["dead: x", "done", "done", "dropped: HTTP 404", "waiting"]
    assert len({one.fingerprint for one in (told, *told.others)}) == 5
    assert all(not other.others for other in told.others)
    plain = Admission(open_rules()).admit(Task(url=URL))
    await any_frontier.add(CRAWL, [plain])
    told = await explain(any_frontier, results, CRAWL, URL)
    assert (told.verdict, told.fingerprint) == ("waiting", plain.fingerprint.hex())
    assert len(told.others) == 5


async def test_one_that_was_purged_is_not_called_dead(
    any_frontier: Frontier, results: Results
) -> None:
    await act(any_frontier, results, Task(url=URL, method="POST"), Verdict.DEAD, "x")
    assert await any_frontier.purge_dead(CRAWL) == 1
    assert (await explain(any_frontier, results, CRAWL, URL)).verdict.startswith("dropped")


async def test_of_many_tasks_at_one_address_some_are_told_of(
    any_frontier: Frontier, results: Results
) -> None:
    tasks = [Task(url=URL, method="POST", body=str(number)) for number in range(50)]
    await any_frontier.add(CRAWL, [Admission(open_rules()).admit(task) for task in tasks])
    assert len((await explain(any_frontier, results, CRAWL, URL)).others) == MAX_TASKS - 1


async def test_links_that_were_too_deep_are_not_denied(
    any_frontier: Frontier, results: Results
) -> None:
    await any_frontier.start(CRAWL, open_rules(max_depth=2))
    told = await explain(any_frontier, results, CRAWL, URL)
    assert told.verdict == (
        "never added: it was not a seed, and no page above depth 2 linked to it"
        " (links deeper than that are not kept, so a page at that depth may have)"
    )
