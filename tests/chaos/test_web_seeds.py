"""Seeds by the API, while the server is killed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.processes import Folder, peak_memory_kb
from support.until import until_now
from support.web import LOCAL, Answered, Web, serving_web

SEEDS = 300_000
MORE_KB = 60_000
LINES = {"Content-Type": "application/x-ndjson", **LOCAL}


def send_all(server: Web, file: Path) -> Answered:
    size = {"Content-Length": str(file.stat().st_size)}
    with file.open("rb") as body:
        return server.send("POST", "/api/v1/crawls/many/seeds", body, {**LINES, **size})


@pytest.mark.rare
def test_all_are_there_after_a_kill_and_a_repeat_and_memory_is_flat(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    urls = (f"https://shop{number % 50}.example/{number}\n" for number in range(SEEDS))
    file = folder.write("urls.txt", "".join(urls))
    with serving_web(folder) as server, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(send_all, server, file)
        until_now("some seeds to be in", lambda: is_begun(server) or sending.done())
        server.process.kill_all()
        assert isinstance(sending.exception(), OSError)
    assert 0 < folder.stats("many").waiting < SEEDS
    with serving_web(folder) as server:
        before = peak_memory_kb(server.process.pid)
        answer = send_all(server, file).json
        assert answer["added"] + answer["duplicates"] == SEEDS
        assert answer["duplicates"] > 0
        assert peak_memory_kb(server.process.pid) - before < MORE_KB
    assert folder.stats("many").waiting == SEEDS


def is_begun(server: Web) -> bool:
    answer = server.get("/api/v1/crawls/many")
    return answer.status == 200 and answer.json["waiting"] > 5_000
