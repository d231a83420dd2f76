"""The Scrapy add-on: `ADDONS = {"shoal.scrapy.Addon": 0}` puts Shoal's scheduler into a project's
settings."""

from __future__ import annotations

from scrapy.settings import BaseSettings

SCHEDULER = "shoal.scrapy.scheduler.Scheduler"


class Addon:
    """Puts Shoal's scheduler in place of Scrapy's. The scheduler does everything else, so that
    projects which name it themselves, as with scrapy-redis, get the same."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy when a crawler is made."""
        settings.set("SCHEDULER", SCHEDULER, priority="spider")  # `-s SCHEDULER=...` still wins.
