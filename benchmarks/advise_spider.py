"""The spider of advise_shapes.py. SHOAL_BENCH_SHAPE is the work to do, as JSON: see `Work`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import msgspec

from shoal import Page, Spider, Task


class Work(msgspec.Struct, frozen=True):
    """The pages to crawl, and what reading one costs."""

    hosts: dict[str, int] = {}
    """Number of pages by host, like `http://127.0.0.1:4711`."""
    chains: list[int] = []
    """Number of pages of each chain. Chains are assigned to the hosts in turn."""
    read_s: float = 0.0
    """CPU time that reading a page takes."""


class Shaped(Spider):
    """Keeps the title of each page, and follows no links."""

    name = "shaped"
    robots = False

    def start(self) -> Iterator[str | Task]:
        work = _work()
        left = dict(work.hosts) if not work.chains else {}
        while left:  # One page of each host in turn, as links of a real site would come.
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
