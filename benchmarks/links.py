"""Makes links like those of real crawls: 60 to 70 characters, twenty on a page."""

from __future__ import annotations

import gc
from collections.abc import Iterator

from shoal.config import Rules
from shoal.core.task import Task
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry
from shoal.spider.page import Page

RULES = Rules(rate="none", robots=False, concurrency_per_host=1_000_000, lease_s=3600.0)
"""Rules under which no task has to wait, so that only the frontier is measured."""

PER_PAGE = 20


def sites(hosts: int) -> list[str]:
    """The names of the first `hosts` hosts."""
    return [_site(number) for number in range(hosts)]


def followed(first: int, count: int, hosts: int) -> list[Entry]:
    """`count` links from number `first` on, as `page.follow_all` makes them. They go to all hosts
    in turn."""
    admission = Admission(RULES)
    return [
        admission.admit(task)
        for start in range(first, first + count, PER_PAGE)
        for task in _links_of_page(start, min(PER_PAGE, first + count - start), hosts)
    ]


def in_batches(entries: list[Entry], size: int) -> Iterator[list[Entry]]:
    """Entries in batches of `size`."""
    return (entries[start : start + size] for start in range(0, len(entries), size))


def collect_seldom() -> None:
    """Configure the garbage collector as a worker does: see runtime/memory.py."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _links_of_page(first: int, count: int, hosts: int) -> list[Task]:
    links = [
        f"https://{_site(number % hosts)}/catalogue/garden/product-{number:08}.html"
        for number in range(first, first + count)
    ]
    page = Page(
        url=f"https://{_site(first % hosts)}/catalogue/page-{first}.html",
        status=200,
        headers={},
        body=b"",
        task=Task(url="", depth=2),
        fingerprint=first.to_bytes(8),
    )
    return page.follow_all(links, "product")


def _site(number: int) -> str:
    return f"shop-{number:06}.example"
