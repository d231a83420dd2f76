"""API v1, for programs: the table of all its routes."""

from __future__ import annotations

from shoal.web.api import (
    archived,
    crawls,
    dead,
    events,
    export,
    health,
    lists,
    monitoring,
    openapi,
    schedules,
    seeds,
)
from shoal.web.routes import Route

API: tuple[Route, ...] = (
    *health.ROUTES,
    *crawls.ROUTES,
    *lists.ROUTES,
    *seeds.ROUTES,
    *dead.ROUTES,
    *events.ROUTES,
    *export.ROUTES,
    *archived.ROUTES,
    *schedules.ROUTES,
    *monitoring.ROUTES,
    *openapi.ROUTES,
)
