"""Files that belong to items: from `page.file` and `page.files`, and how items refer to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.core.files import FileRef, StoredFile, file_task, known_as, no_file
from shoal.core.task import MAX_PRIORITY, Task
from shoal.errors import BadUrl
from shoal.spider.items import is_item_class

if TYPE_CHECKING:
    from shoal.spider.page import Page

MAX_FIELD = 100


class ItemFiles:
    """An item and the files that belong to it. It is yielded like an item."""

    __slots__ = ("addresses", "beyond", "field", "item", "tasks")

    def __init__(self, item: Any, field: str) -> None:
        """Raises TypeError or ValueError if the item or the field cannot have files."""
        if not is_item_class(type(item)):
            raise TypeError(f"item= must be the item that the file belongs to, not {item!r:.80}")
        if not isinstance(field, str) or not 0 < len(field) <= MAX_FIELD:
            limit = f"1 to {MAX_FIELD} characters"
            raise ValueError(f"a field must be text of {limit}, not {field!r:.80}")
        self.item = item
        self.field = field
        self.tasks: list[Task] = []
        self.addresses: list[str] = []
        """Links that are not valid addresses."""
        self.beyond: list[str] = []
        """The first link beyond the limit, if there are too many."""

    def __repr__(self) -> str:
        return f"<ItemFiles {self.field}: {len(self.tasks)} of {type(self.item).__name__}>"


class FileOptions(msgspec.Struct, frozen=True):
    """How to fetch files: the options of `Page.file` and `Page.files`."""

    priority: int | None
    headers: Mapping[str, str] | None
    proxy_pool: str | None
    session: str | None


def files_for(
    page: Page, links: Iterable[str], item: Any, field: str, how: FileOptions
) -> ItemFiles:
    """The files at some links of a page, for an item.

    They go before other pages, so that items are soon complete, and are as deep as their page. If
    there are too many, the first of the rest is reported, and the others are only counted.
    """
    given = ItemFiles(item, field)
    parent, now = page.fingerprint.hex(), datetime.now(UTC).replace(microsecond=0)
    above = min(page.task.priority + 1, MAX_PRIORITY)
    headers = _checked_headers(how.headers)
    session = page.task.session if how.session is None else how.session
    links = iter(links)
    for link in islice(links, page.max_links):
        if not link.strip():
            continue
        try:
            task = file_task(page.urljoin(link.strip()), session)
        except BadUrl:
            given.addresses.append(link)
            continue
        task.parent, task.depth, task.created_at = parent, page.task.depth, now
        task.priority = above if how.priority is None else how.priority
        task.headers, task.proxy_pool = dict(headers), how.proxy_pool
        given.tasks.append(task)
    given.beyond = list(islice(links, 1))
    page.links_cut += len(given.beyond) + sum(1 for _ in links)
    return given


def _checked_headers(headers: Mapping[str, str] | None) -> dict[str, str]:
    try:
        return msgspec.convert(dict(headers or {}), dict[str, str])
    except msgspec.ValidationError as error:
        raise ValueError(f"headers: {error}") from None


class WantedFiles:
    """Collects the files that a page's items refer to. Each is fetched once."""

    def __init__(self, most: int | None, at: float) -> None:
        """`most` is the maximum number of files of one page. None: no limit."""
        self._most = most
        self._at = at
        self._tasks: dict[str, Task] = {}
        self.refused: list[StoredFile] = []

    @property
    def tasks(self) -> list[Task]:
        """The tasks of the files to fetch."""
        return list(self._tasks.values())

    def refs(self, given: Sequence[ItemFiles]) -> list[FileRef]:
        """The references of one item to its files, each once."""
        refs: dict[tuple[str, str], FileRef] = {}
        for files in given:
            found = [self._ref(task) for task in files.tasks]
            found += [self._refuse(link, "no web address") for link in files.addresses]
            found += [self._refuse(link, self._too_many) for link in files.beyond]
            for url, key in found:
                refs[files.field, key] = FileRef(files.field, url, key)
        return list(refs.values())

    @property
    def _too_many(self) -> str:
        return f"more than {self._most:,} files of one page (max_links_per_page)"

    def _ref(self, task: Task) -> tuple[str, str]:
        if task.task_id not in self._tasks:
            if self._most is not None and len(self._tasks) >= self._most:
                return self._refuse(task.url, self._too_many)
            self._tasks[task.task_id] = task
        return task.url, known_as(task, b"").hex()

    def _refuse(self, url: str, error: str) -> tuple[str, str]:
        file = no_file(url, error, self._at)
        self.refused.append(file)
        return file.url, file.fingerprint.hex()
