"""A task that failed, as `on_failure` gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.core.task import Task
from shoal.spider.following import Handler
from shoal.spider.page import Page

if TYPE_CHECKING:
    from shoal.spider.links import Link


class Failure:
    """How a task died, or why it was dropped."""

    __slots__ = ("_page", "detail", "dropped", "kind", "page", "reason", "task")

    def __init__(
        self,
        *,
        task: Task,
        fingerprint: bytes,
        page: Page | None,
        reason: str,
        kind: str,
        detail: str,
        dropped: bool,
    ) -> None:
        self.task = task
        self.page = page
        """The response to the last try. None: there was none."""
        self.reason = reason
        """Why it failed, in one line."""
        self.kind = kind
        """The kind of failure, in a word: `timeout`, `status_4xx`, `handler`. Empty if dropped."""
        self.detail = detail
        """The traceback, if the spider raised an exception."""
        self.dropped = dropped
        """Whether it was dropped. Otherwise it is dead."""
        self._page = page or Page(
            url=task.url, status=0, headers={}, body=b"", task=task, fingerprint=fingerprint
        )

    def __repr__(self) -> str:
        return f"<Failure {self.task.url}: {self.reason}>"

    @property
    def url(self) -> str:
        """The address that was requested."""
        return self.task.url

    @property
    def meta(self) -> dict[str, Any]:
        """The notes of the task: its `meta`."""
        return self.task.meta

    def follow(self, target: Link, handler: Handler | None = None, **options: Any) -> Task:
        """The task to fetch another address instead: see `Page.follow`."""
        return self._page.follow(target, handler, **options)
