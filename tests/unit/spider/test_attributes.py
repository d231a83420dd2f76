"""Attributes that look like settings."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.spider.attributes import mistaken_attributes, mistaken_line
from shoal.spider.spider import Spider


def parse(self: Spider, page: object) -> list[Any]:
    return [row.user_agents for row in (self,)] and [lambda: self.rates]  # type: ignore[attr-defined]


def mistakes(**members: Any) -> dict[str, str]:
    return mistaken_attributes(type("Shop", (Spider,), members))


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("concurency", "concurrency"),
        ("start_url", "start_urls"),
        ("max_page", "max_pages"),
        ("allow_hosts", "allowed_hosts"),
        ("allowed_domains", "allowed_hosts"),
        ("download_delay", "rate"),
    ],
)
def test_what_is_probably_meant(name: str, meant: str) -> None:
    assert mistakes(**{name: 1}) == {name: meant}


def test_the_first_requests_of_scrapy() -> None:
    assert mistakes(start_requests=lambda self: ()) == {"start_requests": "start"}
    assert mistakes(start_requests=lambda self: (), start=lambda self: ()) == {}
    assert mistaken_line("start_requests", "start").startswith("start_requests is Scrapy's")


def test_what_is_no_mistake() -> None:
    assert mistakes(rate="1/s", categories=["a"], _rates=1, prices=lambda self, page: None) == {}


def test_what_a_method_reads_is_its_own() -> None:
    assert mistakes(user_agents=["a"], rates=1, parse=parse) == {}


def test_what_is_inherited_is_looked_at() -> None:
    base = type("Base", (Spider,), {"concurency": 1})
    assert mistaken_attributes(type("Shop", (base,), {})) == {"concurency": "concurrency"}
