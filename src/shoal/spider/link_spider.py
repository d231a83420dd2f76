"""The spider for plain URLs: it follows the links on their hosts, and stores an item per page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from shoal.core import urls
from shoal.core.task import Task
from shoal.spider.items import Item
from shoal.spider.page import Page
from shoal.spider.spider import Spider

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")


class WebPage(Item, key="url"):
    """The item that is stored for each page: URL, status, title, size, links."""

    url: str
    status: int
    title: str | None
    text_size: int
    """Characters of visible text; a run of white space counts as one."""
    links: int


class LinkSpider(Spider):
    """Follows all links on the same host."""

    def parse(self, page: Page) -> Iterator[WebPage | list[Task]]:
        found = page.follow_all("a[href], area[href]")
        yield WebPage(
            url=page.url,
            status=page.status,
            title=_title(page),
            text_size=_text_size(page),
            links=len(found),
        )
        host = urls.parse(page.url).host
        yield [task for task in found if urls.parse(task.url).host == host]


def spider_for(targets: Sequence[str]) -> type[Spider]:
    """A spider for these URLs and their hosts. Raises BadUrl."""
    hosts = list(dict.fromkeys(urls.parse(url).host for url in targets))
    name = _NOT_IN_NAMES.sub("-", hosts[0]).strip("-.")
    members = {"name": name, "start_urls": tuple(targets), "allowed_hosts": tuple(hosts)}
    return type("LinkSpider", (LinkSpider,), members)


def urls_of(spider: type[Spider]) -> list[str] | None:
    """The URLs of a spider that `spider_for` made. None for other spiders."""
    if spider.__bases__ == (LinkSpider,) and spider.__module__ == __name__:
        return list(spider.start_urls)
    return None


def _title(page: Page) -> str | None:
    title = page.css("title::text").get()
    return _collapsed(title) if title else None


def _text_size(page: Page) -> int:
    everything = page.css("body ::text").getall()
    unseen = page.css("body script::text, body style::text").getall()
    return _size(everything) - _size(unseen)


def _size(texts: Sequence[str]) -> int:
    return sum(len(_collapsed(text)) for text in texts)


def _collapsed(text: str) -> str:
    return " ".join(text.split())
