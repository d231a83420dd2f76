"""The Scrapy add-on: what `ADDONS = {"shoal.scrapy.Addon": 0}` does to a project's settings."""

from __future__ import annotations

from scrapy.settings import BaseSettings

SCHEDULER = "shoal.scrapy.scheduler.Scheduler"


class Addon:
    """Puts Shoal's scheduler in place of Scrapy's. All else is up to the scheduler, so that those
    who name it themselves, as with scrapy-redis, get the same."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy when a crawler is made."""
        settings.set("SCHEDULER", SCHEDULER, priority="spider")  # `-s SCHEDULER=...` still wins.
