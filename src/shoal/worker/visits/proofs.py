"""Decides whether a page shows that its account is logged in, as the spider or its table
defines."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shoal.core.session_config import SessionConfig
from shoal.spider.page import Page
from shoal.spider.spider import Spider

Proof = Callable[[Page], bool]
"""Whether a page proves a login. Raises what the spider's own method raises, and Unparsable."""


def proof_of(spider: Spider, table: SessionConfig) -> Proof | None:
    """Return the proof that pages are checked for. The spider's own takes precedence. None: there
    is no proof."""
    said = spider.logged_in
    if callable(said):
        return partial(_as_said, said)
    query = said or table.logged_in
    return partial(_has, query) if query else None


def _as_said(said: Proof, page: Page) -> bool:
    return bool(said(page))


def _has(query: str, page: Page) -> bool:
    return bool(page.css(query))
