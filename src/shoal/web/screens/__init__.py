"""The dashboard, for people: the table of routes of all its screens."""

from __future__ import annotations

from shoal.web.routes import Route
from shoal.web.screens import (
    alerts,
    crawl,
    crawl_actions,
    crawls,
    dead_tasks,
    explain,
    fleet,
    login,
    schedules,
)
from shoal.web.screens.pages import Pages

__all__ = ["SCREENS", "Pages"]

SCREENS: tuple[Route, ...] = (
    *crawls.ROUTES,
    *crawl.ROUTES,
    *fleet.ROUTES,
    *schedules.ROUTES,
    *alerts.ROUTES,
    *explain.ROUTES,
    *crawl_actions.ROUTES,
    *dead_tasks.ROUTES,
    *login.ROUTES,
)
