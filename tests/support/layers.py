"""The layers of the package: see docs/architecture.md."""

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
"""The layers from the top. A package imports only from layers below, never from its neighbours.
Only users' spiders are imported by name, in fleet/target.py."""
