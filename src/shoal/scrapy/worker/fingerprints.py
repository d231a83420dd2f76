"""Decides which task a seed or a URL is, in a crawl that uses Scrapy's request fingerprints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.project import get_project_settings, inside_project
from scrapy.utils.request import fingerprint

from shoal.core.task import Task, raw_body
from shoal.errors import BadUrl, ConfigError
from shoal.scrapy.wire.fingerprint import short_fingerprint


def fingerprints_of(whose: str) -> Callable[[Task], bytes]:
    """Return a function from tasks to fingerprints: Scrapy's own, or those of the surrounding
    project."""
    of_request = fingerprint if whose == "scrapy" else _project_fingerprinter().fingerprint

    def of_task(task: Task) -> bytes:
        try:
            request = Request(task.url, method=task.method, body=raw_body(task))
        except ValueError as error:
            raise BadUrl(str(error)) from None
        return short_fingerprint(of_request(request), task.session)

    return of_task


def _project_fingerprinter() -> Any:
    if not inside_project():
        raise ConfigError(
            "the crawl has request fingerprints of its own: run this inside its Scrapy project"
        )
    settings = get_project_settings()
    made_by = load_object(settings["REQUEST_FINGERPRINTER_CLASS"])
    return build_from_crawler(made_by, Crawler(Spider, settings))
