"""Turns sitemaps into tasks. A worker fetches a sitemap like a page and queues what it lists, so
rate, robots.txt, retries and leases apply to sitemaps too.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.core import urls
from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.fetch.robots import ROBOTS_PATH, text_of
from shoal.frontier.admission import Admission
from shoal.frontier.values import Entry
from shoal.seeds.sitemap_xml import BadSitemap, Location, read_sitemap

SITEMAP = "shoal:sitemap"
"""The handler of sitemap tasks, and the key in `meta` of their notes. No method can have this name.
"""

MAX_LOCATIONS = 50_000
"""How many URLs of one sitemap or index are read. The protocol allows no more."""

MAX_LEVELS = 3
"""The maximum number of indexes on the way to a sitemap. The protocol has one; some sites have two.
"""

NO_ROBOTS_STATUSES = frozenset(range(400, 500)) - {429}
"""The statuses that mean that a site has no robots.txt."""

_AT_ONCE = 200
"""How many URLs are read before other tasks of the event loop get their turn."""

_NAMED_IN_ROBOTS = re.compile(r"(?:\A|[\r\n])[ \t]*sitemap[ \t]*:[ \t]*(\S[^\r\n]*)", re.IGNORECASE)


class SitemapNote(msgspec.Struct, omit_defaults=True):
    """What is known about a sitemap before it is read."""

    reading: str = ""
    """An id. Tasks with the same id read each sitemap once, however often it is named."""
    since: float | None = None
    """Leave out pages that have not changed since this time."""
    level: int = 0
    """The number of indexes on the way to this sitemap."""
    is_robots: bool = False
    """Whether this is a robots.txt, which names sitemaps."""
    is_large: bool = False
    """Whether the sitemap turned out to be larger than a page may be."""


class Listed(msgspec.Struct):
    """The tasks that a sitemap leads to."""

    entries: list[Entry] = []
    filtered: int = 0
    """How many URLs were not admitted."""
    problem: str = ""
    """Why the list may be incomplete. Empty if it is complete."""


def sitemap_task(address: str, note: SitemapNote) -> Task:
    """Make the task for a sitemap, a robots.txt or a site. Raises BadUrl.

    The sitemaps of a site are those named in its robots.txt, or else /sitemap.xml.
    """
    parsed = urls.parse(address)
    note.is_robots = parsed.pathname in ("/", ROBOTS_PATH)
    url = urls.join(parsed, ROBOTS_PATH if note.is_robots else "")
    return Task(
        url=url,
        job_type=SITEMAP,
        meta={SITEMAP: msgspec.to_builtins(note)},
        # Its fingerprint must differ from that of the same URL visited as a page, or read as a
        # sitemap in an earlier reading.
        dont_filter=True,
        task_id=_id_of(url, note),
    )


def redirected_id(task: Task) -> str:
    """The id of the sitemap that a redirect leads to. Raises BadUrl.

    It is the same as if that sitemap had been named itself, so that it is read once, however many
    redirects lead there. Empty if the task belongs to no reading.
    """
    note = _note_of(task)
    return _id_of(urls.join(urls.parse(task.url), ""), note) if note.reading else ""


def with_room(task: Task, fingerprint: bytes) -> Task:
    """Make a new task for a sitemap that turned out to be larger than a page may be."""
    note = _note_of(task)
    note.is_large = True
    return msgspec.structs.replace(
        task,
        meta={**task.meta, SITEMAP: msgspec.to_builtins(note)},
        retry_count=0,
        dont_filter=True,
        task_id=uuid5(NAMESPACE_URL, f"{fingerprint.hex()} with room").hex,
    )


def is_robots(task: Task) -> bool:
    """Whether a task is for a robots.txt that names sitemaps."""
    return _note_of(task).is_robots


def is_large(task: Task) -> bool:
    """Whether a task is for a sitemap that needs more room than a page."""
    return _note_of(task).is_large


def can_be_read(task: Task, status: int) -> bool:
    """Whether an answer can be read. A missing robots.txt counts: the sitemap then has its usual
    place."""
    return 200 <= status < 300 or (status in NO_ROBOTS_STATUSES and is_robots(task))


async def read_listed(
    task: Task, fingerprint: bytes, status: int, body: bytes, admission: Admission
) -> Listed:
    """Read the pages and further sitemaps that an answer leads to.

    All get the depth of the task, so the pages of a sitemap that was a seed are seeds.
    """
    reader = _Reader(task, fingerprint, admission)
    locations = _in_robots(status, body) if reader.note.is_robots else read_sitemap(body)
    try:
        for location in locations:
            if location is None or reader.taken % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if location is not None:
                reader.take(location)
    except BadSitemap as error:
        reader.listed.problem = str(error)
    return reader.listed


class _Reader:
    """Makes tasks of the locations in one sitemap."""

    def __init__(self, task: Task, fingerprint: bytes, admission: Admission) -> None:
        self.note = _note_of(task)
        self.listed = Listed()
        self.taken = 0
        self._task = task
        self._site = urls.parse(task.url).host
        self._parent = fingerprint.hex()
        self._admission = admission

    def take(self, location: Location) -> None:
        """Add one location. Raises BadSitemap if there are too many."""
        if self.taken >= MAX_LOCATIONS:
            raise BadSitemap(f"more than {MAX_LOCATIONS:,} addresses: the rest is left out")
        self.taken += 1
        if not self._is_wanted(location):
            return
        try:
            task = self._further(location) if location.is_sitemap else Task(url=location.url)
            task.parent, task.depth = self._parent, self._task.depth
            task.proxy_pool, task.session = self._task.proxy_pool, self._task.session
            self.listed.entries.append(self._admission.admit(task, self._site))
        except BadUrl:
            self.listed.filtered += 1

    def _is_wanted(self, location: Location) -> bool:
        """Whether a location may have changed. For a sitemap, an index gives the time of its last
        changed page."""
        since = self.note.since
        return since is None or location.lastmod is None or location.lastmod >= since

    def _further(self, location: Location) -> Task:
        note = self.note
        if note.level >= MAX_LEVELS:
            raise BadSitemap(f"more than {MAX_LEVELS} indexes, one in the other")
        address = urls.join(urls.parse(self._task.url), location.url)
        return sitemap_task(address, SitemapNote(note.reading, note.since, note.level + 1))


def _in_robots(status: int, body: bytes) -> Iterator[Location]:
    lines = _NAMED_IN_ROBOTS.finditer(text_of(body) if status < 300 else "")
    named = (Location(line[1].strip(), is_sitemap=True) for line in lines)
    yield next(named, Location("/sitemap.xml", is_sitemap=True))
    yield from named


def _id_of(url: str, note: SitemapNote) -> str:
    """The id of a sitemap task. It depends on the kind, as a site may redirect both a missing
    robots.txt and a missing sitemap to its home page."""
    kind = "robots.txt" if note.is_robots else "sitemap"
    return uuid5(NAMESPACE_URL, f"{note.reading} {kind} {url}").hex


def _note_of(task: Task) -> SitemapNote:
    """The note of a task. If the task came from elsewhere, the note may be missing or invalid."""
    try:
        return msgspec.convert(task.meta[SITEMAP], SitemapNote)
    except (KeyError, msgspec.ValidationError):
        return SitemapNote(is_robots=urls.parse(task.url).pathname == ROBOTS_PATH)
