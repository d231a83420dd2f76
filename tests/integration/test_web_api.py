"""API v1 of a real `shoal serve`, beside the command line that works on the same frontier."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from aiohttp import web

from shoal.config import Rules
from shoal.coordinator.runs import RUN_REQUESTS
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.values import Ask, Pulse
from shoal.web.api import API
from shoal.web.api.lists import MOST
from shoal.web.cursors import cursor_after
from support.coordinators import NEVER, Office
from support.links import put_spider
from support.processes import Folder
from support.sites import Site, html, serving
from support.until import until_now
from support.web import LOCAL, Web, serving_web

FRONT = "".join(f'<a href="/{number}"></a>' for number in range(1, 7))
BROKEN = ("/1", "/2")
GONE = "/3"


async def shop(path: str) -> web.Response:
    if path in BROKEN:
        return html("broken", 500)
    return html(FRONT if path == "/" else f"<h1>{path}</h1>", 404 if path == GONE else 200)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("api"), {"SHOAL_RATE": "none"})


@pytest.fixture(scope="module")
def served(folder: Folder) -> Iterator[Web]:
    """A server beside a crawl that is over: five pages done, two dead."""
    with serving(Site(shop)) as site:
        put_spider(folder, [site], max_retries=0)
        ended = folder.shoal("crawl", "links.py")
        assert ended.code == 3, ended.err
        Office(folder).schedule(NEVER)
        with serving_web(folder) as server:
            yield server


def routes_to_try() -> list[Any]:
    return [route for route in API if route.method == "GET" and route.gives is not None]


@pytest.mark.parametrize("route", routes_to_try(), ids=lambda route: route.path)
def test_answers_have_the_form_that_is_described(served: Web, route: Any) -> None:
    path = route.path.format(crawl="links", name="shop")
    answer = served.get(f"{path}?url=http://x.example/" if path.endswith("explain") else path)

    assert answer.status == 200, answer.body
    form = msgspec.convert(answer.json, route.gives, strict=False)
    if isinstance(form, msgspec.Struct):
        assert set(answer.json) <= {f.encode_name for f in msgspec.structs.fields(form)}


def test_a_crawl_is_told_as_the_command_line_tells_it(served: Web, folder: Folder) -> None:
    by_command = folder.shoal("status", "links", "--json").json()
    told = served.get("/api/v1/crawls/links/snapshot").json

    assert set(told) == set(by_command)
    assert {name: told[name] for name in ("done", "dead", "state", "failures_by_kind")} == {
        "done": 4,
        "dead": 2,
        "state": "finished",
        "failures_by_kind": {"status_5xx": 2},
    }
    assert [one["crawl"] for one in served.get("/api/v1/crawls").json["items"]] == ["links"]
    assert served.get("/api/v1/crawls?state=running").json == {
        "items": [],
        "total": 0,
        "cursor": None,
    }


def test_what_was_seen_already_is_not_sent_again(served: Web) -> None:
    first = served.get("/live/crawls/links/rules")
    again = served.get("/live/crawls/links/rules", {"If-None-Match": first.headers["ETag"]})

    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_proxies_that_compress_change_tags_and_what_was_seen_is_still_known(served: Web) -> None:
    tag = served.get("/live/crawls/links/rules").headers["ETag"]
    for known, status in {
        f"W/{tag}": 304,
        tag[:-1] + '-gzip"': 304,
        f'"other", W/{tag}': 304,
        "*": 304,
        '"other"': 200,
    }.items():
        answer = served.get("/live/crawls/links/rules", {"If-None-Match": known})
        assert answer.status == status, known


def test_dead_tasks_page_by_page(served: Web) -> None:
    path = "/api/v1/crawls/links/dead?limit=1"
    first = served.get(path).json
    second = served.get(f"{path}&cursor={first['cursor']}").json

    assert (first["total"], second["total"], second["cursor"]) == (2, 2, None)
    urls = {page["items"][0]["url"].rpartition("/")[2] for page in (first, second)}
    assert urls == {"1", "2"}
    assert served.get(f"{path}&cursor=nonsense").status == 400
    assert served.get(f"{path}&kind=timeout").json["items"] == []
    assert served.get(f"{path}&kind=nonsense").status == 400
    assert served.get(f"{path}&color=red").status == 400
    assert served.get(f"{path}&kind=timeout&kind=handler").status == 400


async def fill_wide(frontier: Frontier) -> None:
    """A crawl of nine hosts, all of whose tasks are leased, by two workers of three."""
    rules = Rules(rate="none", robots=False)
    await frontier.start("wide", rules)
    tasks = [Task(url=f"https://h{number}.example/") for number in range(9)]
    await frontier.add("wide", [Admission(rules).admit(task) for task in tasks])
    for name, most in (("a", 4), ("b", 5), ("c", 0)):
        machine = "two" if name == "c" else "one"
        await frontier.beat("wide", Pulse(worker=name, host=machine, pid=1, version="1"))
        await frontier.lease("wide", Ask(name, most))


def all_pages(served: Web, path: str) -> list[list[Any]]:
    """The items of a list, page by page."""
    found, cursor = [], ""
    while cursor is not None:
        page = served.get(f"{path}{f'&cursor={cursor}' if cursor else ''}").json
        found.append(page["items"])
        cursor = page["cursor"]
    return found


def test_hosts_workers_and_leased_tasks_page_by_page_and_filtered(
    served: Web, folder: Folder
) -> None:
    asyncio.run(folder.ask_frontier(fill_wide))
    for name, field, count in (
        ("hosts", "host", 9),
        ("active", "url", 9),
        ("workers", "worker", 3),
    ):
        path = f"/api/v1/crawls/wide/{name}?limit=2"
        pages = all_pages(served, path)
        assert [len(page) for page in pages] == [2] * (count // 2) + [1] * (count % 2)
        assert len({one[field] for page in pages for one in page}) == count
        assert served.get(f"{path}&cursor=nonsense").status == 400
        beyond = cursor_after(MOST.to_bytes(8, "big"))
        assert served.get(f"{path}&cursor={beyond}").status == 400
    for asked, count in {
        "hosts?q=h7.": 1,
        "hosts?q=nothing": 0,
        "hosts?order=failing": 0,
        "active?worker=a": 4,
        "active?worker=b&limit=3": 3,
        "active?host=h7.example": 1,
        "active?host=h7.example&worker=c": 0,
        "workers?host=one": 2,
        "workers?host=none": 0,
    }.items():
        assert len(served.get(f"/api/v1/crawls/wide/{asked}").json["items"]) == count, asked


def test_a_dry_run_changes_nothing_and_has_the_exact_count(served: Web, folder: Folder) -> None:
    for action in ("retry", "purge"):
        order = {"kind": "status_5xx", "dry_run": True}
        answer = served.post(f"/api/v1/crawls/links/dead/{action}", order)
        assert answer.json == {"count": 2, "dry_run": True}
    assert folder.stats("links").dead == 2


@pytest.mark.parametrize("path", ["links/dead/purge?dry_run=true", "links/cancel?dry_run=true"])
def test_what_is_said_in_the_wrong_place_is_not_ignored(
    served: Web, folder: Folder, path: str
) -> None:
    before = folder.stats("links")
    assert served.post(f"/api/v1/crawls/{path}", {}).status == 400
    assert served.post("/api/v1/crawls/links/cancel", {"dry_run": True}).status == 400
    assert folder.stats("links") == before


def test_dead_tasks_are_retried_and_purged_by_what_was_said(tmp_path: Path) -> None:
    folder = Folder(tmp_path, {"SHOAL_RATE": "none"})
    with serving(Site(shop)) as site, serving_web(folder) as server:
        put_spider(folder, [site], max_retries=0)
        folder.shoal("crawl", "links.py")
        dead = server.get("/api/v1/crawls/links/dead").json["items"]
        one = {"fingerprints": [dead[0]["fingerprint"]]}
        assert server.post("/api/v1/crawls/links/dead/purge", one).json["count"] == 1
        assert (
            server.post("/api/v1/crawls/links/dead/retry", {"kind": "timeout"}).json["count"] == 0
        )
        host = {"host": dead[0]["host"]}
        assert server.post("/api/v1/crawls/links/dead/retry", host).json["count"] == 1
        stats = folder.stats("links")
        assert (stats.dead, stats.waiting, stats.dropped) == (0, 1, 2)


def test_items_and_exports(served: Web, folder: Folder) -> None:
    path = "/api/v1/crawls/links/items"
    items = served.get(path).json
    assert (len(items["items"]), items["total"], items["cursor"]) == (4, 4, None)
    first = served.get(f"{path}?limit=3").json
    second = served.get(f"{path}?limit=3&cursor={first['cursor']}").json
    assert first["items"] + second["items"] == items["items"]
    assert (first["total"], second["total"], second["cursor"]) == (4, None, None)
    assert served.get(f"{path}?cursor=nonsense").status == 400
    lines = served.get("/api/v1/crawls/links/export").body.splitlines()
    assert [json.loads(line) for line in lines] == folder.export("links")
    table = served.get("/api/v1/crawls/links/export?format=csv")
    assert table.headers["Content-Type"] == "text/csv"
    assert table.headers["Content-Disposition"] == 'attachment; filename="links.csv"'
    assert served.get("/api/v1/crawls/links/export?format=xml").status == 400
    assert served.get("/api/v1/crawls/links/export?since=yesterday").status == 400
    assert served.get("/api/v1/crawls/nothing/export").status == 404


def test_seeds_as_json(served: Web, folder: Folder) -> None:
    seeds = ["https://a.example/1", {"url": "https://a.example/2", "priority": 3}, "not an address"]
    answer = served.post("/api/v1/crawls/json/seeds", {"seeds": seeds}).json
    assert (answer["added"], answer["duplicates"], answer["bad"]) == (2, 0, 1)
    assert [error["line"] for error in answer["errors"]] == [3]
    again = served.post("/api/v1/crawls/json/seeds", {"seeds": seeds[:2]}).json
    assert (again["added"], again["duplicates"]) == (0, 2)
    assert folder.stats("json").waiting == 2


@pytest.mark.parametrize("media", ["application/json", "application/x-ndjson"])
@pytest.mark.parametrize("encoding", ["gzip", "zstd", "compress", "identity, br"])
def test_a_compressed_body_is_refused(served: Web, media: str, encoding: str) -> None:
    sent = {**LOCAL, "Content-Type": media, "Content-Encoding": encoding}
    body = gzip.compress(b'{"seeds": ["https://a.example/"]}')
    answer = served.send("POST", "/api/v1/crawls/compressed/seeds", body, sent)

    assert answer.status == 415
    assert answer.headers["Accept-Encoding"] == "identity"
    assert served.get("/api/v1/crawls/compressed").status == 404


def test_seeds_of_which_none_is_good_are_a_problem(served: Web) -> None:
    answer = served.post("/api/v1/crawls/bad/seeds", {"seeds": ["", "nonsense", {"ur": 1}]})

    assert answer.status == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.json["bad"], [one["line"] for one in answer.json["errors"]]) == (2, [2, 3])
    assert served.post("/api/v1/crawls/bad/seeds", {"seeds": ["x"] * 1001}).status == 400
    assert served.post("/api/v1/crawls/bad/seeds", [1]).status == 400


def test_seeds_as_a_stream_of_lines(served: Web, folder: Folder) -> None:
    lines = [f"https://b.example/{number}" for number in range(5000)]
    lines[1234] = "{not json"
    lines[1235] = f'"{lines[1235]}"'  # As those write it who write every line as JSON.
    kind = {"Content-Type": "application/x-ndjson", **LOCAL}
    body = "\n".join(lines).encode()
    answer = served.send("POST", "/api/v1/crawls/lines/seeds", body, kind).json

    assert (answer["added"], answer["bad"], answer["errors"][0]["line"]) == (4999, 1, 1235)
    assert folder.stats("lines").waiting == 4999
    long = b"https://c.example/" + b"x" * 3_000_000
    assert served.send("POST", "/api/v1/crawls/lines/seeds", long, kind).status == 413


def test_a_stream_that_breaks_is_sent_again(served: Web, folder: Folder) -> None:
    host, port = served.base.removeprefix("http://").split(":")
    head = (
        f"POST /api/v1/crawls/broken/seeds HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer x\r\n"
        "Content-Type: application/x-ndjson\r\nContent-Length: 99999999\r\n\r\n"
    )
    lines = "".join(f"https://d.example/{number}\n" for number in range(2000)).encode()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + lines)
        until_now("some to be added", lambda: "broken" in _names(served))
    kind = {"Content-Type": "application/x-ndjson", **LOCAL}
    answer = served.send("POST", "/api/v1/crawls/broken/seeds", lines, kind).json
    assert answer["added"] + answer["duplicates"] == 2000
    assert folder.stats("broken").waiting == 2000


def _names(server: Web) -> list[str]:
    return [one["crawl"] for one in server.get("/api/v1/crawls").json["items"]]


def test_steering(served: Web, folder: Folder) -> None:
    name = "odd / name?&<b>"
    place = f"/api/v1/crawls/{quote(name, safe='')}"
    assert served.post(f"{place}/seeds", {"seeds": ["https://e.example/"]}).status == 200
    assert served.get(place).json["crawl"] == name
    assert served.post(f"{place}/pause").status == 409  # Nobody has started it.
    assert served.send("DELETE", place, headers=LOCAL).status == 409  # Its seeds would be lost.
    assert served.post(f"{place}/cancel").json == {"crawl": name, "state": "cancelled"}
    assert folder.shoal("status", name, "--json").json()["state"] == "cancelled"
    assert served.post(f"{place}/resume").status == 409
    assert served.send("DELETE", place, headers=LOCAL).status == 204
    assert served.get(place).status == 404
    assert served.send("DELETE", place, headers=LOCAL).status == 404


def test_explain(served: Web) -> None:
    url = served.get("/api/v1/crawls/links/dead").json["items"][0]["url"]
    told = served.get(f"/api/v1/crawls/links/explain?url={quote(url)}").json
    assert told["verdict"].startswith("dead")
    assert served.get("/api/v1/crawls/links/explain?url=nonsense").status == 400
    assert served.get("/api/v1/crawls/links/explain").status == 400


def test_a_run_is_asked_for_once_by_one_key(served: Web, folder: Folder) -> None:
    path, office = "/api/v1/schedules/shop", Office(folder)
    first = served.post(f"{path}/run", Idempotency_Key="once")
    assert first.status == 202
    crawl = first.json["crawl"]
    until_now("the run", lambda: crawl in office.runs())
    again = served.post(f"{path}/run", Idempotency_Key="once")
    assert again.json["crawl"] == crawl
    until_now("the request to be read", lambda: not requests(folder))
    assert list(office.runs()) == [crawl]
    assert served.post("/api/v1/schedules/nothing/run").status == 404
    assert served.post(f"{path}/pause").json == {"name": "shop", "is_paused": True}
    (planned,) = folder.shoal("schedule", "list", "--json").json()["schedules"]
    assert planned["is_paused"]
    assert served.post(f"{path}/resume").json["is_paused"] is False


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1", "openmetrics-text"),
        ("application/openmetrics-text;version=99.x", "openmetrics-text; version=1.0.0"),
        ("text/html", "text/plain"),
    ],
)
def test_metrics_have_the_form_that_a_scraper_asks_for(
    served: Web, accept: str, media: str
) -> None:
    answer = served.get("/metrics?hosts=true", {"Accept": accept})
    assert media in answer.headers["Content-Type"]
    assert b'shoal_host_tasks_waiting{crawl="links"' in answer.body


def test_a_route_of_alerts_is_tried(served: Web, folder: Folder) -> None:
    with (folder.path / "shoal.toml").open("a") as config:
        for name in ("true", "false"):
            config.write(f'[alerts.routes.{name}]\nkind = "command"\ncommand = ["{name}"]\n')
    path = "/api/v1/alerts/routes"
    assert served.post(f"{path}/true/test").json == {"route": "true", "failure": ""}
    assert "1" in served.post(f"{path}/false/test").json["failure"]
    assert served.post(f"{path}/nothing/test").status == 404


def requests(folder: Folder) -> dict[str, bytes]:
    return asyncio.run(folder.ask_frontier(lambda frontier: frontier.notes.all(RUN_REQUESTS)))


def test_every_route_of_the_api_is_described(served: Web) -> None:
    told = served.get("/api/openapi.json").json
    described = {(path, method.upper()) for path, of in told["paths"].items() for method in of}

    assert told["openapi"] == "3.1.0"
    assert described == {(route.path, route.method) for route in API}
    names = [each["operationId"] for of in told["paths"].values() for each in of.values()]
    assert len(set(names)) == len(names)
