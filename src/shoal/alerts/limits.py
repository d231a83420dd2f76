"""From when on something is worth an alert: the keys of [alerts] in shoal.toml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.config import Duration

Share = Annotated[float, Meta(ge=0, le=1)]


class Limits(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What may be, and from when on it is too much: for all crawls, or for one."""

    growing: Duration = "1h"
    """The queue may grow, and the ETA rise, for so long."""
    failures: Share = 0.2
    """The share of requests of the last quarter of an hour that may fail."""
    blocked: Share = 0.1
    """The share of requests of the last quarter of an hour that hosts may refuse to serve."""
    concentration: Share = 0.8
    """The share of failed tries that three hosts may have, if they are less than half of the
    work."""
    duplicates: Share = 0.99
    """The share of links of the last hour that may be known already, if no item was found."""
    stalled: Duration = "15m"
    """Nothing may be fetched for so long, while there is work and somebody to do it."""
    no_workers: Duration = "5m"
    """There may be work and no worker for so long."""
    slow_worker: Share = 0.25
    """The speed that each worker has at least, as a share of the median."""
    slow_store: Duration = "5s"
    """How long a batch of results may take to store, on average."""
    backlog: Annotated[int, Meta(ge=1)] = 300
    """The pages of one worker that may wait to be stored."""
    dead: Share = 0.01
    """The share of pages that may be dead."""
    fewer_items: Share = 0.5
    """The items of a finished crawl, at least, as a share of those of the one before."""
    no_leader: Duration = "5m"
    """There may be no leader for so long."""
    off: tuple[str, ...] = ()
    """Alerts that are not wanted, by name."""
