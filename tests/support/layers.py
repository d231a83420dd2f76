"""The layers of the package, from the top: see docs/architecture.md."""

from __future__ import annotations

LAYERS = (
    ("cli",),
    ("demo", "web", "workbench"),
    ("scrapy",),
    ("alerts", "autoscale"),
    ("insight",),
    ("coordinator",),
    ("fleet",),
    ("publish",),
    ("worker", "export", "feeds"),
    ("seeds", "exits", "sessions"),
    ("spider", "frontier", "results", "archive", "fetch"),
    ("drivers",),
    ("runtime",),
    ("config",),
    ("core",),
    ("errors", "version"),
)
"""From the top. A part imports from those below it, never from its neighbours. One thing is
imported by name: the spiders of users, in fleet/target.py."""
