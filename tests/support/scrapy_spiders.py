"""The sources of plain Scrapy spiders, which tests write to projects of their own."""

from __future__ import annotations

SHOP = """
import os

import scrapy


class Shop(scrapy.Spider):
    name = "shop"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield from response.follow_all(css="li.product a", callback=self.product, priority=10)
        yield from response.follow_all(css="a.next, nav a")

    def product(self, response):
        yield {
            "sku": response.css("span.sku::text").get(),
            "title": response.css("h1::text").get(),
            "price": float(response.css("span.price::text").get()),
        }
        yield from response.follow_all(css="a.related", callback=self.product)
"""
"""A spider of the demo shop. A product without a price raises."""

THINGS = """
import os

import scrapy


class Things(scrapy.Spider):
    name = "things"
    start_urls = os.environ["SITES"].split(",")

    def parse(self, response):
        yield from response.follow_all(css="a.list", callback=self.parse)
        yield from response.follow_all(css="a:not(.list)", callback=self.thing)

    def thing(self, response):
        yield {
            "path": response.url.partition("?")[0].rpartition(":")[2].partition("/")[2],
            "sku": response.css(".sku::text").get(),
            "price": float(response.css(".price::text").get()),
        }
"""
"""A spider of the site in `scrapy_site`. A broken page raises."""
