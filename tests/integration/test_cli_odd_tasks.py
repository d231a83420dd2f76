"""Tasks that are more than the GET of a page are asked for, tried again and dropped by address."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Verdict
from support.frontiers import CRAWL, Client, open_rules, outcome
from support.processes import Folder

URL = "https://shop.example/search?filter[color]=red"
ASKED_AS = "https://SHOP.example/search?filter[color]=red&utm_source=letter#top"
BODY = "form " * 20


async def _fill(path: Path) -> None:
    """Four dead tasks, three of them with one address."""
    frontier = SqliteFrontier(path)
    admission = Admission(open_rules())
    client = Client(frontier, "worker", CRAWL)
    tasks = [
        Task(url=URL, method="POST", body=BODY),
        Task(url=URL, dont_filter=True),
        Task(url=URL, dont_filter=True),
        Task(url=f"{URL}&page=2", method="POST"),
    ]
    await client.start(*map(admission.admit, tasks), concurrency_per_host=9)
    dead = [outcome(at, Verdict.DEAD, reason="broken") for at in await client.lease(9)]
    assert await client.finish(*dead) == []
    await frontier.close()


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    asyncio.run(_fill(tmp_path / "shoal.db"))
    return Folder(tmp_path)


def test_explain_tells_of_each(folder: Folder) -> None:
    told = folder.call("explain", CRAWL, ASKED_AS, "--json").json()
    each = [told, *told["others"]]
    assert [one["verdict"] for one in each] == ["dead: broken"] * 3
    assert [one["record"]["task"].get("method", "GET") for one in each] == ["POST", "GET", "GET"]
    shown = folder.call("explain", CRAWL, ASKED_AS).out
    assert shown.count("dead: broken") == 3
    assert "POST, body form form" in shown
    assert shown.count("a copy of its own (dont_filter)") == 2


def test_dead_show_has_all_with_the_address(folder: Folder) -> None:
    shown = folder.call("dead", "show", CRAWL, ASKED_AS)
    assert shown.out.count("broken") == 3
    told = folder.call("dead", "show", CRAWL, ASKED_AS, "--json").json()
    assert (told["url"], len(told["others"])) == (URL, 2)
    nobody = folder.call("dead", "show", CRAWL, "https://shop.example/")
    assert (nobody.code, nobody.out) == (2, "")


@pytest.mark.parametrize(("action", "said"), [("retry", "queued again"), ("purge", "dropped")])
def test_dead_retry_and_purge_take_all_with_the_address(
    folder: Folder, action: str, said: str
) -> None:
    assert folder.call("dead", action, CRAWL, ASKED_AS).out == f"{said}: 3 tasks\n"
    (left,) = folder.call("dead", "list", CRAWL, "--json").json()
    assert left["url"] == f"{URL}&page=2"
    assert folder.call("dead", action, CRAWL, ASKED_AS, URL).out == f"{said}: 0 tasks\n"
