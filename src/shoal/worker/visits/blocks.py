"""Blocks on the way to a page: found in the answer, or by the spider, before a handler reads it."""

from __future__ import annotations

from shoal.core.blocks import Block, UsualSizes, find_block, is_marked
from shoal.core.task import Task
from shoal.errors import Unparsable
from shoal.fetch.port import Response
from shoal.frontier.values import Lease
from shoal.spider.page import Page
from shoal.spider.spider import Spider

MAX_KIND = 80
"""Characters of what a spider calls a block."""


class Blocked(Exception):
    """What looked like a page is a block."""

    def __init__(self, block: Block) -> None:
        super().__init__(block.kind)
        self.block = block


class BlockWatch:
    """Looks at answers for a visitor, and learns how long pages usually are."""

    def __init__(self) -> None:
        self._sizes = UsualSizes()

    def look_at(
        self, lease: Lease, response: Response, *, is_accepted: bool = False
    ) -> Block | None:
        """What kind of block an answer is, as far as it shows. None: it shows nothing.

        Without an exit, nobody is there to try it in our place: so all is as its status says, and
        only what a guard itself calls a block is one. No page is lost to a guess. Where the spider
        accepts the status of an answer, that is no sign of a block either.
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
        """This was a page, got by an exit."""
        self._sizes.note(task.job_type, len(response.body))


class SpiderGuard:
    """What a spider says of blocks: its `expect`, and its `blocked`."""

    def __init__(self, spider: Spider) -> None:
        self._spider = spider
        self._expect = spider.expect
        self._asks = type(spider).blocked is not Spider.blocked

    def __bool__(self) -> bool:
        """Whether the spider says anything."""
        return self._asks or bool(self._expect)

    def ask(self, page: Page) -> bool | None:
        """Raises Blocked for a page that the spider calls a block, and what `blocked` raises. Of
        any other, False: it is none, whatever it looks like. None: no opinion."""
        said = self._spider.blocked(page) if self._asks else None
        if isinstance(said, str) and said:
            raise Blocked(Block(" ".join(said.split())[:MAX_KIND]))
        if said:
            raise Blocked(Block("blocked", "the spider says so"))
        return None if said is None else False

    def look(self, page: Page) -> None:
        """Raises Blocked for a page without what every page is expected to have."""
        if self._expect and not _has(page, self._expect):
            raise Blocked(Block(f"expected {self._expect}"))

    def clears(self, page: Page) -> bool:
        """Whether the spider says that what looks like a block is none."""
        return self._asks and self._spider.blocked(page) is False


def _has(page: Page, query: str) -> bool:
    """Whether an HTML page has what all pages of the site have. What is no HTML has no need to, and
    what cannot be parsed is for its handler to find out."""
    if "html" not in page.headers.get("Content-Type", "").lower():
        return True
    try:
        return bool(page.css(query))
    except Unparsable:
        return True
