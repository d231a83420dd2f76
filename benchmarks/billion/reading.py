"""Measures the CPU time of reading pages of two sizes: parsing, fields, following all links."""

from __future__ import annotations

import time

import msgspec

from shoal.core.task import Task
from shoal.spider.page import Page

SMALL_KB, LARGE_KB = 11, 242
"""The size of pages of `make bench`, and the average of the published crawl."""
TIMES = 60

_LINK = '<li><a class="more" href="/catalogue/garden/product-{n}.html">Product {n}</a></li>\n'
_ROW = '<tr><td class="name">Property {n}</td><td class="value">value {n} <i>unit</i></td></tr>\n'
_TEXT = (
    "<p>It is made in small numbers, and each piece differs a <em>little</em> from the next.</p>"
)
_HEAD = '<!doctype html><title>A</title><h1>A</h1><span class="sku">1</span><b class="price">2</b>'


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of reading a small and a large page, in microseconds."""

    small_us: float
    large_us: float

    @property
    def us_per_kb(self) -> float:
        """What each further kilobyte costs."""
        return (self.large_us - self.small_us) / (LARGE_KB - SMALL_KB)


def measure() -> Reading:
    """Measure both sizes. The smallest of several rounds counts, as the machine may be in use."""
    return Reading(small_us=_cost_us(SMALL_KB), large_us=_cost_us(LARGE_KB))


def _cost_us(size_kb: int) -> float:
    body = _page_of(size_kb)
    return min(_round_us(body) for _ in range(5))


def _round_us(body: bytes) -> float:
    began = time.process_time()
    for _ in range(TIMES):
        _read(body)
    return (time.process_time() - began) / TIMES * 1e6


def _read(body: bytes) -> None:
    page = Page(
        url="https://shop-000001.example/catalogue/page-1.html",
        status=200,
        headers={"content-type": "text/html; charset=utf-8"},
        body=body,
        task=Task(url="", depth=2),
        fingerprint=bytes(8),
    )
    for selector in ("h1::text", "span.sku::text", "b.price::text", "title::text"):
        page.css(selector).get()
    page.follow_all("a.more", "product")


def _page_of(size_kb: int) -> bytes:
    """A page with a link for every 550 bytes, as in `make bench`."""
    parts = [_HEAD]
    size = 0
    while size < size_kb * 1000:
        number = len(parts)
        parts.append(_LINK.format(n=number) + _ROW.format(n=number) * 2 + _TEXT * 3)
        size += len(parts[-1])
    return "".join(parts).encode()
