"""The number of the form in which a crawl is kept on Redis: what its keys are, how hosts and
entries are packed, what blocks with a carrier look like.

A version knows its own number and those before. It raises the number when one before it could not
work on such a crawl any more without doing harm. What others may ignore needs no new number: a
field more of a task, a counter more, a value more behind those of a packed record.
"""

from __future__ import annotations

from shoal.errors import NewerFormat

LAYOUT = 1
"""That of new crawls. Crawls of before there were numbers have none: they are of this one, too."""

FIELD = "layout"
"""Where it is in the hash of each shard. The scripts look before they do anything: lua/step.lua."""

_NEWER = (
    "{}: crawl '{}' was written by a newer shoal (layout {}, this one knows {}): upgrade shoal, or"
    " use another --name"
)


def check_layout(stored: bytes | None, shown: str, crawl: str) -> None:
    """Raises NewerFormat if a crawl's layout is none that we know."""
    if stored is not None and not (stored.isdigit() and int(stored) <= LAYOUT):
        raise newer(stored.decode("utf-8", "replace"), shown, crawl)


def newer(layout: str, shown: str, crawl: str) -> NewerFormat:
    """What is to be said of it."""
    return NewerFormat(_NEWER.format(shown, crawl, layout, LAYOUT))
