"""Blocks in place of pages: found in the answer, or by the spider, before a handler reads it."""

from __future__ import annotations

from shoal.core.blocks import Block, UsualSizes, find_block, is_marked
from shoal.core.task import Task
from shoal.errors import Unparsable
from shoal.fetch.port import Response
from shoal.frontier.values import Lease
from shoal.spider.page import Page
from shoal.spider.spider import Spider

MAX_KIND = 80
"""The most characters of a spider's name for a block."""


class Blocked(Exception):
    """What looked like a page is a block."""

    def __init__(self, block: Block) -> None:
        super().__init__(block.kind)
        self.block = block


class BlockWatch:
    """Looks for blocks in the answers to a visitor, and learns how long pages usually are."""

    def __init__(self) -> None:
        self._sizes = UsualSizes()

    def look_at(
        self, lease: Lease, response: Response, *, is_accepted: bool = False
    ) -> Block | None:
        """Return the block that an answer shows to be, or None.

        Without an exit, no other exit can try in this one's place: so an answer is what its status
        says, and only what a guard itself calls a block is one. No page is lost to a guess. A
        status that the spider accepts is no sign of a block either.
        """
        status = response.status
        if lease.lent is None or is_accepted:
            if (200 <= status < 300 or is_accepted) and is_marked(response.headers):
                return find_block(status, response.headers, response.body)
            return None
        task = lease.task
        return find_block(
            status,
            response.headers,
            response.body,
            url=task.url,
            usual_bytes=self._sizes.usual(task.job_type),
            may_be_empty=task.method != "GET",
        )

    def note(self, task: Task, response: Response) -> None:
        """Learn from an answer by an exit that was a page."""
        self._sizes.note(task.job_type, len(response.body))


class SpiderGuard:
    """What a spider says about blocks: its `expect` and its `blocked`."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._expect = spider.expect
        self._asks = type(spider).blocked is not Spider.blocked

    def __bool__(self) -> bool:
        """Whether the spider says anything about blocks."""
        return self._asks or bool(self._expect)

    def ask(self, page: Page) -> bool | None:
        """Ask the spider about a page. Returns False if it is no block, whatever it looks like;
        None if the spider has no opinion. Raises Blocked if it is one, and what `blocked`
        raises."""
        said = self._spider.blocked(page) if self._asks else None
        if isinstance(said, str) and said:
            raise Blocked(Block(" ".join(said.split())[:MAX_KIND]))
        if said:
            raise Blocked(Block("blocked", "the spider says so"))
        return None if said is None else False

    def look(self, page: Page) -> None:
        """Raise Blocked for a page without what every page is expected to have."""
        if self._expect and not _has(page, self._expect):
            raise Blocked(Block(f"expected {self._expect}"))

    def clears(self, page: Page) -> bool:
        """Whether the spider says that what looks like a block is none."""
        return self._asks and self._spider.blocked(page) is False


def _has(page: Page, query: str) -> bool:
    """Whether an HTML page has what all pages of the site have. Other answers pass, and so do pages
    that cannot be parsed: their handler finds out."""
    if "html" not in page.headers.get("Content-Type", "").lower():
        return True
    try:
        return bool(page.css(query))
    except Unparsable:
        return True
