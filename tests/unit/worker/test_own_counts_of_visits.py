"""What a spider counts while a page is visited."""

from __future__ import annotations

import asyncio

from shoal.config import Rules, Settings
from shoal.core.task import Task
from shoal.spider.page import Page
from shoal.spider.spider import Spider
from shoal.workbench.one_page import try_page
from support.until import in_time
from support.visitors import OneAnswer


class Leaving(Spider):
    """Leaves something running that counts, too."""

    name = "leaving"
    is_over: asyncio.Event
    left: asyncio.Task[None]

    async def parse(self, page: Page) -> None:
        self.is_over = asyncio.Event()
        self.count("read")
        self.left = asyncio.create_task(self._count_on())

    async def _count_on(self) -> None:
        await in_time("the end of the try", self.is_over.wait())
        self.count("late")


async def test_what_is_counted_when_the_try_is_over_does_not_change_what_it_has_told() -> None:
    spider, settings = Leaving(), Settings(rules=Rules(robots=False))
    tried = await try_page(
        spider, settings, Task(url="https://shop.example/"), lambda: OneAnswer(200)
    )
    spider.is_over.set()
    await spider.left
    assert tried.report.outcome.own_counts == {"read": 1}
