"""Sitemaps as tasks. A worker fetches one as it fetches a page, and queues what it lists: so rate,
robots.txt, retries and leases hold for sitemaps too.
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
"""The handler of such tasks, and the key of `meta` for their notes. No method can be called so."""

MAX_LOCATIONS = 50_000
"""Addresses that are read of one sitemap, and of one index: the protocol allows no more."""

MAX_LEVELS = 3
"""Indexes on the way to a sitemap. The protocol knows one; some sites have two."""

NO_ROBOTS_STATUSES = frozenset(range(400, 500)) - {429}
"""Answers of sites that have no robots.txt."""

_AT_ONCE = 200
"""Addresses that are read before others get their turn."""

_NAMED_IN_ROBOTS = re.compile(r"(?:\A|[\r\n])[ \t]*sitemap[ \t]*:[ \t]*(\S[^\r\n]*)", re.IGNORECASE)


class SitemapNote(msgspec.Struct, omit_defaults=True):
    """What is known of a sitemap before it is read."""

    reading: str = ""
    """In one reading each sitemap is read once, however often it is named."""
    since: float | None = None
    """Leave out what has not changed since then."""
    level: int = 0
    """Indexes on the way here."""
    is_robots: bool = False
    """Whether it is a robots.txt, which names sitemaps."""
    is_large: bool = False
    """Whether it was found to be larger than a page may be."""


class Listed(msgspec.Struct):
    """What a sitemap leads to."""

    entries: list[Entry] = []
    filtered: int = 0
    """Addresses that were not admitted."""
    problem: str = ""
    """Why there may be more. Empty if this is all."""


def sitemap_task(address: str, note: SitemapNote) -> Task:
    """The task for a sitemap, a robots.txt, or a site: then it is its robots.txt that names the
    sitemaps, and /sitemap.xml if it names none. Raises BadUrl."""
    parsed = urls.parse(address)
    note.is_robots = parsed.pathname in ("/", ROBOTS_PATH)
    url = urls.join(parsed, ROBOTS_PATH if note.is_robots else "")
    return Task(
        url=url,
        job_type=SITEMAP,
        meta={SITEMAP: msgspec.to_builtins(note)},
        # Its identity is not that of the page at this address: that may have been read as a page,
        # or as a sitemap in an earlier reading.
        dont_filter=True,
        task_id=_id_of(url, note),
    )


def redirected_id(task: Task) -> str:
    """Who the target of a redirect is: the same as if it had been named itself, so that it is read
    once however many lead there. Empty if it belongs to no reading. Raises BadUrl."""
    note = _note_of(task)
    return _id_of(urls.join(urls.parse(task.url), ""), note) if note.reading else ""


def with_room(task: Task, fingerprint: bytes) -> Task:
    """The task for a sitemap that was found to be larger than a page may be."""
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
    """Whether an answer says which addresses there are. A site without a robots.txt has its sitemap
    where all have it."""
    return 200 <= status < 300 or (status in NO_ROBOTS_STATUSES and is_robots(task))


async def read_listed(
    task: Task, fingerprint: bytes, status: int, body: bytes, admission: Admission
) -> Listed:
    """What such an answer leads to: pages, and further sitemaps. All are as deep as it is, so the
    pages of one that was a seed are seeds."""
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
    """Makes tasks of what one sitemap lists."""

    def __init__(self, task: Task, fingerprint: bytes, admission: Admission) -> None:
        self.note = _note_of(task)
        self.listed = Listed()
        self.taken = 0
        self._task = task
        self._site = urls.parse(task.url).host
        self._parent = fingerprint.hex()
        self._admission = admission

    def take(self, location: Location) -> None:
        """One address. Raises BadSitemap if there may be no end to them."""
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
        """Whether it may have changed. An index says of a sitemap when any of its pages did."""
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
    """A home page may stand for a robots.txt and for a sitemap, where all that is missing leads to
    it: these are two."""
    kind = "robots.txt" if note.is_robots else "sitemap"
    return uuid5(NAMESPACE_URL, f"{note.reading} {kind} {url}").hex


def _note_of(task: Task) -> SitemapNote:
    """The note of a task. One that somebody else wrote may have none, or anything."""
    try:
        return msgspec.convert(task.meta[SITEMAP], SitemapNote)
    except (KeyError, msgspec.ValidationError):
        return SitemapNote(is_robots=urls.parse(task.url).pathname == ROBOTS_PATH)
