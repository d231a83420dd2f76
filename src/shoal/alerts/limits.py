"""The limits beyond which an alert is raised: keys of [alerts] in shoal.toml."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from shoal.config import Duration

LONGEST_LOOK_BACK = "2h"
"""How far the points of a crawl that the leader has at hand reach back: see insight/history.py."""
LOOKING_BACK = ("growing", "stalled")
"""The limits that compare with a point so long ago."""

Share = Annotated[float, Meta(ge=0, le=1)]


class Limits(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The limits of alerts, for all crawls or for some."""

    growing: Duration = "1h"
    """How long the queue may grow while the ETA rises."""
    failures: Share = 0.2
    """The share of tries in the last 15 minutes that may fail."""
    blocked: Share = 0.1
    """The share of requests in the last 15 minutes that hosts may refuse to serve."""
    concentration: Share = 0.8
    """The share of failed tries that three hosts may have, if they had at most half of all tries.
    """
    duplicates: Share = 0.99
    """The share of links in the last hour that may be known already, if no item was found."""
    stalled: Duration = "15m"
    """How long nothing may be fetched while there is work and there are workers."""
    no_workers: Duration = "5m"
    """How long there may be work but no worker."""
    slow_worker: Share = 0.25
    """The least speed of a worker, as a share of the median speed."""
    slow_store: Duration = "5s"
    """How long a batch of results may take to store, on average."""
    backlog: Annotated[int, Meta(ge=1)] = 300
    """How many pages of one worker may wait to be stored."""
    dead: Share = 0.01
    """The share of pages that may be dead."""
    fewer_items: Share = 0.5
    """The fewest items of a finished crawl, as a share of those of the crawl before."""
    no_leader: Duration = "5m"
    """How long there may be no leader."""
    off: tuple[str, ...] = ()
    """The names of alerts that are switched off."""
