"""The response that a handler reads: its text, its queries and its links."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never

import can_ada
import msgspec
from selectolax.lexbor import LexborNode

from shoal.core import urls
from shoal.core.task import Task
from shoal.errors import BadUrl, MissingExtra, Unparsable
from shoal.spider import markup, trial
from shoal.spider.effort import Shape
from shoal.spider.scrapy_words import unknown_attribute
from shoal.spider.selection import Selection, parse_query

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

_BASE_TAG = re.compile(rb"<base", re.IGNORECASE)


class Document:
    """One response. It is parsed once, when a query needs it."""

    __slots__ = (
        "_base",
        "_flaw",
        "_is_tried",
        "_parsel",
        "_scope",
        "_shape",
        "_text",
        "body",
        "fingerprint",
        "headers",
        "session",
        "status",
        "task",
        "url",
    )

    def __init__(
        self,
        *,
        url: str,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        task: Task,
        fingerprint: bytes,
        session: str | None = None,
    ) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.body = body
        self.task = task
        self.fingerprint = fingerprint
        self.session = session
        """The account it was fetched with: `shop#alice`. None: without an account."""
        self._text: str | None = None
        self._scope: Sequence[LexborNode] | None = None
        self._shape: Shape | None = None
        self._flaw: Unparsable | None = None
        self._is_tried = False
        self._base: can_ada.URL | None = None
        self._parsel: Selector | None = None

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    if not TYPE_CHECKING:  # To mypy, any attribute would exist.

        def __getattr__(self, name: str) -> Never:
            raise unknown_attribute(self, name)

    @property
    def meta(self) -> dict[str, Any]:
        """The notes of its task."""
        return self.task.meta

    @property
    def is_html(self) -> bool:
        """Whether the server says that it is HTML."""
        return "html" in self._content_type.lower()

    @property
    def text(self) -> str:
        """The body as text. Bytes that cannot be decoded become U+FFFD."""
        if self._text is None:
            self._text = markup.text(self.body, self._content_type)
        return self._text

    def json(self) -> Any:
        """The value of a JSON body. Raises ValueError if it is not JSON."""
        try:
            return msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"{self.url} is not JSON: {error}") from None

    def css(self, query: str) -> Selection:
        """What a CSS query finds.

            page.css("h1::text").get()
            page.css("a.product::attr(href)").getall()

        Besides CSS, there are `::text` for the text of elements and `::attr(name)` for an
        attribute. Raises ValueError if the query is not CSS.
        """
        return Selection(self._parsed(), parse_query(query), self._shape)

    def xpath(self, query: str, **variables: Any) -> SelectorList[Selector]:
        """What an XPath query finds, as parsel selectors: `page.xpath("//h1/text()").get()`.

        Needs the extra `xpath`. Raises Unparsable.
        """
        if self._parsel is None:
            try:
                from parsel import Selector
            except ImportError:
                raise MissingExtra("page.xpath()", "xpath") from None
            if self._flaw is not None:
                raise self._flaw
            if not self._is_tried:
                markup.refuse_endless(self.text.encode("utf-8", "replace"))
            self._parsel = Selector(text=self.text, type="html")  # Otherwise parsel guesses.
        return self._parsel.xpath(query, **variables)

    @property
    def visible_text(self) -> str:
        """The text of an HTML page as people see it. Empty if it cannot be parsed."""
        try:
            return markup.visible_text(self._parsed())
        except Unparsable:
            return ""

    @property
    def canonical(self) -> str | None:
        """The address that the page gives as its own (rel=canonical). None if it gives none."""
        if b"canonical" not in self.body.lower():
            return None
        try:
            href = self.css('link[rel~="canonical" i]::attr(href)').get()
            return self.urljoin(href) if href else None
        except (BadUrl, Unparsable):
            return None

    def urljoin(self, link: str) -> str:
        """The absolute address of a link on this page. Raises BadUrl."""
        return urls.join(self._base_url(), link)

    async def _weigh(self) -> None:
        """Parse an odd page in another process first, without blocking other pages. If that fails,
        the error is raised when the page is read."""
        if not self.is_html:
            return
        html = markup.as_utf8(self.body, self._content_type)
        if markup.is_odd(html):
            try:
                await asyncio.to_thread(trial.check, html)
            except Unparsable as error:
                self._flaw = error
        self._is_tried = True

    def _parsed(self) -> Sequence[LexborNode]:
        if self._flaw is not None:
            raise self._flaw
        if self._scope is None:
            try:
                self._scope = markup.tree(self.body, self._content_type, is_tried=self._is_tried)
            except Unparsable as error:
                self._flaw = error  # Trying again would take as long.
                raise
            for root in self._scope:
                self._shape = Shape(self.body, self._content_type, root)
        return self._scope

    @property
    def _content_type(self) -> str:
        return self.headers.get("Content-Type", "")

    def _base_url(self) -> can_ada.URL:
        if self._base is None:
            self._base = urls.parse(self.url)
            if _BASE_TAG.search(self.body, 0, 4_096):
                href = self.css("base::attr(href)").get()
                self._base = _rebased(self._base, href)
        return self._base


def _rebased(base: can_ada.URL, href: str | None) -> can_ada.URL:
    try:
        return urls.parse(urls.join(base, href)) if href else base
    except BadUrl:
        return base
