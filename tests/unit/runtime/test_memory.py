"""The memory of a worker: a page's tree is not fetched from the system again and again, and large
pages are freed."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import weakref

import pytest

from shoal.config import Rules, Settings
from shoal.core.task import Task
from shoal.fetch.port import Request, Response
from shoal.runtime import memory
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.one_page import try_page
from support.visitors import OneAnswer

FAULTS_OF_A_WORKER = """
import resource
from selectolax.lexbor import LexborHTMLParser
from shoal.runtime.memory import settle_in

page = b"<p class='a'>text <a href='/b'>link</a></p>" * 300
settle_in()


def read():
    held = LexborHTMLParser(page).css("a")
    return [node.text() for node in held]


read()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(500):
    read()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 500)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="not glibc")
def test_reading_a_page_faults_no_memory_in() -> None:
    told = subprocess.run(
        [sys.executable, "-c", FAULTS_OF_A_WORKER], capture_output=True, check=True, text=True
    )
    assert float(told.stdout) < 1.0, "without settle_in it is about forty"


class LargeAnswer(OneAnswer):
    async def fetch(self, request: Request) -> Response:
        response = await super().fetch(request)
        response.body = b"<p>" + b"x" * memory.LARGE_PAGE_BYTES
        return response


@pytest.mark.parametrize("is_large", [True, False])
async def test_a_large_page_in_a_cycle_is_freed(
    monkeypatch: pytest.MonkeyPatch, *, is_large: bool
) -> None:
    """The garbage collector counts objects: without this, a few such pages fill the memory."""
    walkers = []

    class Walking(Spider):
        def parse(self, page: Page) -> None:
            def walk(depth: int) -> str:
                return walk(depth - 1) if depth else page.text

            walkers.append(weakref.ref(walk))

    site = (LargeAnswer if is_large else OneAnswer)(200)
    settings, task = Settings(rules=Rules(robots=False)), Task(url="https://shop.example/")
    monkeypatch.setattr(memory, "COLLECT_AFTER_BYTES", memory.LARGE_PAGE_BYTES)
    gc.disable()
    try:
        await try_page(Walking(), settings, task, lambda: site)
        assert [walker() is None for walker in walkers] == [is_large]
    finally:
        gc.enable()
