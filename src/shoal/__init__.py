"""Shoal turns one scraper into a fleet."""

from __future__ import annotations

from shoal.catalogue import Catalogue
from shoal.crawl import Summary, crawl
from shoal.errors import ShoalError
from shoal.items import Item
from shoal.page import Page
from shoal.selection import Selection
from shoal.spider import Spider
from shoal.task import Task
from shoal.version import __version__

__all__ = [
    "Catalogue",
    "Item",
    "Page",
    "Selection",
    "ShoalError",
    "Spider",
    "Summary",
    "Task",
    "__version__",
    "crawl",
]
