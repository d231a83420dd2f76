"""The dashboard, for people: the table of routes of all its screens."""

from __future__ import annotations

from shoal.web.routes import Route
from shoal.web.screens import (
    alerts,
    crawl,
    crawls,
    dead_tasks,
    doing,
    fleet,
    looking_up,
    schedules,
    signing_in,
)
from shoal.web.screens.pages import Pages

__all__ = ["SCREENS", "Pages"]

SCREENS: tuple[Route, ...] = (
    *crawls.ROUTES,
    *crawl.ROUTES,
    *fleet.ROUTES,
    *schedules.ROUTES,
    *alerts.ROUTES,
    *looking_up.ROUTES,
    *doing.ROUTES,
    *dead_tasks.ROUTES,
    *signing_in.ROUTES,
)
