"""The layout number of a crawl on Redis: it stands for the names of its keys, the packed form of
hosts and entries, and the form of blocks with a carrier.

A version of Shoal knows its own number and all lower ones. The number is raised when earlier
versions could no longer work on such a crawl without doing harm. What they may ignore needs no new
number: a new field of a task, a new counter, a new value at the end of a packed record.
"""

from __future__ import annotations

from shoal.errors import NewerFormat

LAYOUT = 1
"""The layout of new crawls. Crawls from before there were numbers have this layout, too."""

FIELD = "layout"
"""Its field in the hash of each shard. The scripts check it first: see lua/step.lua."""

_NEWER = (
    "{}: crawl '{}' was written by a newer shoal (layout {}, this one knows {}): upgrade shoal, or"
    " use another --name"
)


def check_layout(stored: bytes | None, shown: str, crawl: str) -> None:
    """Raises NewerFormat if a crawl's layout is not one that this version knows."""
    if stored is not None and not (stored.isdigit() and int(stored) <= LAYOUT):
        raise newer(stored.decode("utf-8", "replace"), shown, crawl)


def newer(layout: str, shown: str, crawl: str) -> NewerFormat:
    """The error for a crawl whose layout this version does not know."""
    return NewerFormat(_NEWER.format(shown, crawl, layout, LAYOUT))
