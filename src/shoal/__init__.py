"""Shoal turns one scraper into a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.core.task import Task
from shoal.core.urls import TRACKING_PARAMETERS
from shoal.errors import LoginFailed, SessionExpired, ShoalError
from shoal.spider.asking import Drop, Retry
from shoal.spider.catalogue import Catalogue
from shoal.spider.failure import Failure
from shoal.spider.follow_rules import Follow
from shoal.spider.items import Item
from shoal.spider.outgoing import Outgoing
from shoal.spider.page import Page
from shoal.spider.selection import Selection
from shoal.spider.session import Session
from shoal.spider.spider import Spider
from shoal.version import __version__

if TYPE_CHECKING:
    from shoal.fleet.crawl import crawl
    from shoal.fleet.summary import Summary

__all__ = [
    "TRACKING_PARAMETERS",
    "Catalogue",
    "Drop",
    "Failure",
    "Follow",
    "Item",
    "LoginFailed",
    "Outgoing",
    "Page",
    "Retry",
    "Selection",
    "Session",
    "SessionExpired",
    "ShoalError",
    "Spider",
    "Summary",
    "Task",
    "__version__",
    "crawl",
]


def __getattr__(name: str) -> Any:
    """What runs crawls brings all of Shoal along: who writes spiders, or asks how a crawl is doing,
    does not wait for it."""
    if name not in ("Summary", "crawl"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shoal.fleet import crawl as running

    return getattr(running, name)
