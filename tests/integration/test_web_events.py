"""What happened to a crawl, as a real `shoal serve` tells it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from aiohttp import web

from support.coordinators import NEVER, Office
from support.links import put_spider
from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now
from support.web import LOCAL, Web, serving_web

SEEDS = {"seeds": ["https://a.example/"]}


async def broken(path: str) -> web.Response:
    return html("broken", 500)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("events"), {"SHOAL_RATE": "none"})


@pytest.fixture(scope="module")
def served(folder: Folder) -> Iterator[Web]:
    Office(folder).schedule(NEVER)
    with serving_web(folder) as server:
        yield server


def events(server: Web, crawl: str) -> list[tuple[str, str]]:
    """What happened and by which door, the oldest first."""
    told = server.get(f"/api/v1/crawls/{crawl}/events").json["items"]
    assert [one["at"] for one in told] == sorted((one["at"] for one in told), reverse=True)
    return [(one["event"], one["by"]) for one in reversed(told)]


def test_what_people_do_is_noted_by_whichever_door_they_come(served: Web, folder: Folder) -> None:
    path = "/api/v1/crawls/steered"
    for _ in range(3):
        served.post(f"{path}/seeds", {"seeds": [f"https://a.example/{_}"]})
    assert folder.shoal("cancel", "steered").code == 0
    assert events(served, "steered") == [
        ("crawl.created", ""),
        ("crawl.seeded", "web"),
        ("crawl.cancelled", "command"),
    ]
    assert served.send("DELETE", path, headers=LOCAL).status == 204
    served.post(f"{path}/seeds", SEEDS)
    assert events(served, "steered") == [("crawl.created", ""), ("crawl.seeded", "web")]


def test_what_becomes_of_it_by_itself_is_told_too(served: Web, folder: Folder) -> None:
    with serving(Site(broken)) as site:
        put_spider(folder, [site], max_retries=0)
        assert folder.shoal("crawl", "links.py").code == 3
    path = "/api/v1/crawls/links"
    assert served.post(f"{path}/dead/retry", {"dry_run": True}).json["count"] == 1
    assert served.post(f"{path}/dead/purge", {}).json["count"] == 1
    assert events(served, "links") == [
        ("crawl.created", ""),
        ("crawl.started", ""),
        ("crawl.finished", ""),
        ("crawl.purged", "web"),
    ]


def test_page_by_page(served: Web) -> None:
    path = "/api/v1/crawls/paged"
    served.post(f"{path}/seeds", SEEDS)
    served.post(f"{path}/cancel")
    everything = served.get(f"{path}/events").json
    first = served.get(f"{path}/events?limit=2").json
    second = served.get(f"{path}/events?limit=2&cursor={first['cursor']}").json
    assert (everything["total"], everything["cursor"], second["cursor"]) == (3, None, None)
    assert first["items"] + second["items"] == everything["items"]
    assert served.get(f"{path}/events?cursor=nonsense").status == 400
    assert served.get("/api/v1/crawls/nothing/events").status == 404


def test_runs_of_schedules(served: Web, folder: Folder) -> None:
    office = Office(folder)
    crawl = served.post("/api/v1/schedules/shop/run").json["crawl"]
    until_now("the run", lambda: crawl in office.runs())
    until_now("its crawl", lambda: served.get(f"/api/v1/crawls/{crawl}").status == 200)
    assert ("run.begin", "coordinator") in events(served, crawl)
