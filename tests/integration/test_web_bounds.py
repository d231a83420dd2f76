"""A real `shoal serve` among clients that want nothing, and two of them asked the same at once."""

from __future__ import annotations

import asyncio
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from shoal.coordinator.runs import RUN_REQUESTS
from shoal.web.api import API
from shoal.web.screens import SCREENS
from support.coordinators import NEVER, Office
from support.processes import Folder, peak_memory_kb
from support.until import LIMIT_S, until_now
from support.web import LOCAL, Web, address_of, serving_web

SILENT = 2000
MORE_KB = 60_000


@contextmanager
def many_files(count: int) -> Iterator[None]:
    """So many more open files for this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, count) if hard < 0 else min(max(soft, count), hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_thousands_of_silent_clients_stop_nobody(tmp_path: Path) -> None:
    with ExitStack() as stack:
        served = stack.enter_context(serving_web(Folder(tmp_path)))
        before = peak_memory_kb(served.process.pid)
        stack.enter_context(many_files(SILENT + 500))
        place = ("127.0.0.1", int(served.base.rpartition(":")[2]))
        for _ in range(SILENT):
            stack.enter_context(socket.create_connection(place))

        answers = {served.get("/api/v1/crawls").status}
        until_now("an answer", lambda: served.get("/api/v1/crawls").status == 200)
        assert answers <= {200, 503}
        assert peak_memory_kb(served.process.pid) - before < MORE_KB


@pytest.mark.rare
def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    paths = [
        route.path.format(crawl="shop", name="shop")
        for route in (*API, *SCREENS)
        if route.method == "POST" and not route.takes_lines
    ]
    with ExitStack() as stack:
        served = stack.enter_context(serving_web(Folder(tmp_path)))
        address = served.base.removeprefix("http://").rpartition(":")
        waiting = {}
        for path in paths:
            client = socket.create_connection((address[0], int(address[2])), LIMIT_S)
            waiting[path] = stack.enter_context(client)
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
        said = {path: client.recv(100).split(b" ")[1] for path, client in waiting.items()}
    assert said == dict.fromkeys(paths, b"408")


def test_two_servers_asked_with_one_key_begin_one_run(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write(
        "links.py", "from shoal import Spider\n\nclass Links(Spider):\n    name = 'links'\n"
    )
    office = Office(folder)
    office.schedule(NEVER)
    with serving_web(folder) as one, folder.running("serve", "--listen", "127.0.0.1:0") as other:
        servers = [one, Web(address_of(other), other)]
        with ThreadPoolExecutor(16) as clients:
            told = list(clients.map(_asked_for_a_run, servers * 8))

        (crawl,) = set(told)
        until_now("the run", lambda: crawl in office.runs() or office.past())
        until_now("all requests to be read", lambda: not _requests(folder))
        begun = {*office.runs(), *(run.crawl for run in office.past())}
        assert begun == {crawl}


def _asked_for_a_run(server: Web) -> str:
    key = {**LOCAL, "Idempotency-Key": "the same"}
    answer = server.send("POST", "/api/v1/schedules/shop/run", headers=key)
    assert answer.status == 202, answer.body
    crawl: str = answer.json["crawl"]
    return crawl


def _requests(folder: Folder) -> dict[str, bytes]:
    return asyncio.run(folder.ask_frontier(lambda frontier: frontier.notes.all(RUN_REQUESTS)))
