"""Reads a JSON API instead of HTML, with `page.json()`. Each answer names the next page.

    API_URL=https://api.example/books?page=1 shoal crawl examples/api_json.py

Each answer looks like this. The last one has no "next":

    {"books": [{"isbn": "...", "title": "...", "authors": ["..."]}], "next": "/books?page=2"}
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from shoal import Item, Page, Spider, Task


class Book(Item, key="isbn"):
    """A book. If the API sends one in another shape, it is rejected and kept with the reason."""

    isbn: str
    title: str
    authors: list[str]
    page: int


class Books(Spider):
    """Follows the API from page to page."""

    start_urls = (os.environ.get("API_URL", "https://api.example/books?page=1"),)
    rate = "5/s"

    def parse(self, page: Page) -> Iterator[Book | Task]:
        """One answer of the API."""
        answer = page.json()
        number = page.meta.get("number", 1)
        for book in answer["books"]:
            yield Book(book["isbn"], book["title"], book["authors"], number)
        if answer.get("next"):
            yield page.follow(answer["next"], meta={"number": number + 1})
