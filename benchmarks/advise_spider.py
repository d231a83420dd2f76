"""The spider of the shapes that advice is tried on: see advise_shapes.py.

SHOAL_BENCH_SHAPE is where the work is, as JSON: see `Work`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec

from shoal import Page, Spider, Task


class Work(msgspec.Struct, frozen=True):
    """What there is to crawl."""

    hosts: dict[str, int] = {}
    """Pages by host: `http://127.0.0.1:4711`."""
    chains: list[int] = []
    """Pages of chains, which go to the hosts in turn."""
    read_s: float = 0.0
    """CPU time that it takes to read a page."""


class Shaped(Spider):
    """Keeps the title of each page, follows nothing."""

    name = "shaped"
    robots = False

    def start(self) -> Iterator[str | Task]:
        work = _work()
        left = dict(work.hosts) if not work.chains else {}
        while left:  # In turn, as links are found.
            for host in list(left):
                left[host] -= 1
                yield f"{host}/{left[host]}"
                if not left[host]:
                    del left[host]
        hosts = list(work.hosts)
        for chain, pages in enumerate(work.chains):
            for number in range(pages):
                url = f"{hosts[chain % len(hosts)]}/{chain}/{number}"
                yield Task(url=url, chain=f"chain-{chain}")

    def parse(self, page: Page) -> Iterator[dict[str, str]]:
        until = time.thread_time() + _READ_S
        while time.thread_time() < until:
            pass
        yield {"url": page.url, "title": page.css("h1::text").get() or ""}


def _work() -> Work:
    return msgspec.json.decode(os.environ["SHOAL_BENCH_SHAPE"], type=Work)


_READ_S = _work().read_s if "SHOAL_BENCH_SHAPE" in os.environ else 0.0
