"""A fetched page, as a handler gets it: a document, and methods to make tasks from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Never

import msgspec
from multidict import CIMultiDict
from selectolax.lexbor import LexborNode

from shoal.core import bodies, urls
from shoal.core.bodies import Files, FormFields
from shoal.core.files import DEFAULT_FIELD
from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.spider import markup
from shoal.spider.document import Document
from shoal.spider.files import FileOptions, ItemFiles, files_for
from shoal.spider.following import Following, Handler, check_session, children
from shoal.spider.forms import Form
from shoal.spider.link_filter import link_filter
from shoal.spider.links import links_inside, links_of, links_of_each
from shoal.spider.scrapy_words import NOTHING, unknown_word
from shoal.spider.selection import Selection, elements_in, links_in

if TYPE_CHECKING:
    from shoal.spider.links import Link


class Page(Document):
    """One response, as a handler gets it. It is parsed once, when it is first read.

    def parse(self, page):
        for product in page.css("li.product"):
            yield {"name": product.css("h2::text").get(), "url": page.url}
        yield from page.follow_all("a.next")
    """

    __slots__ = ("_followed_at", "links_cut", "max_links")

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
        super().__init__(
            url=url,
            status=status,
            headers=headers,
            body=body,
            task=task,
            fingerprint=fingerprint,
            session=session,
        )
        self.max_links: int | None = None
        """The most links that `follow_all` takes: a page may have a million."""
        self.links_cut = 0
        """How many links it left out."""
        self._followed_at: datetime | None = None

    @classmethod
    def from_html(
        cls,
        url: str,
        html: str | bytes,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        task: Task | None = None,
    ) -> Page:
        """A page that was not fetched, for testing handlers.

        Text is encoded as UTF-8. Give its task's notes as `meta`, or a whole `task`. Raises BadUrl.

            page = Page.from_html("https://example.com/", "<h1>Hello</h1>")
            assert page.css("h1::text").get() == "Hello"
        """
        body = html.encode() if isinstance(html, str) else html
        kind = "text/html; charset=utf-8" if isinstance(html, str) else "text/html"
        return cls._made(url, body, kind, status, headers, meta, task)

    @classmethod
    def from_json(
        cls,
        url: str,
        value: Any,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        meta: Mapping[str, Any] | None = None,
        task: Task | None = None,
    ) -> Page:
        """A page whose body is this value as JSON, for testing handlers: see `from_html`."""
        body = msgspec.json.encode(value)
        return cls._made(url, body, "application/json", status, headers, meta, task)

    @classmethod
    def _made(
        cls,
        url: str,
        body: bytes,
        content_type: str,
        status: int,
        headers: Mapping[str, str] | None,
        meta: Mapping[str, Any] | None,
        task: Task | None,
    ) -> Page:
        named = CIMultiDict({"Content-Type": content_type})
        named.update(headers or {})
        task = task or Task(url=url, meta={**(meta or {})})
        return cls(
            url=url,
            status=status,
            headers=named,
            body=body,
            task=task,
            fingerprint=urls.fingerprint(urls.Normaliser().identify(url).normal, task.method),
        )

    def follow(
        self,
        target: Link = NOTHING,
        handler: Handler | None = None,
        *,
        priority: int | None = None,
        meta: Mapping[str, Any] | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | None = None,
        form: FormFields | None = None,
        json: Any = None,
        files: Files | None = None,
        dont_filter: bool = False,
        chain: str | None = None,
        proxy_pool: str | None = None,
        session: str | None = None,
        accept: Iterable[int] = (),
        max_retries: int | None = None,
        not_before: datetime | str | None = None,
        on_failure: Handler | None = None,
        **unknown: Never,
    ) -> Task:
        """The task to fetch a URL, or the link in a selection, and have the handler read it.

            yield page.follow("/products?page=2")
            yield page.follow(page.css("a.details"), self.product, meta={"rank": 1})

        Without a handler, `parse` reads it. Relative URLs are resolved against the page.

        - `form` is sent urlencoded, or as multipart if there are `files`: `{"photo": ("a.png",
          data)}`, with the media type as a third value where the name does not tell it.
        - `chain`: a name of your choice. Tasks of one chain are done one after another, in the
          order in which they are added, by any worker. Different chains run side by side.
        - `proxy_pool`: the pool of exits to use; "direct" for none. By default, the pool of the
          crawl, if it has one.
        - `session`: the account to fetch it with: "shop" for any of a group, "shop#alice" for a
          certain one, "none" for none. By default, that of this page's own task.
        - `accept`: statuses besides 2xx whose responses the handler reads.
        - `max_retries`: a limit for this task, in place of the crawl's.
        - `not_before`: when to send it at the earliest: a datetime with a time zone, or a time from
          now, "10m".
        - `on_failure`: the method of the spider to call with a `Failure` if the task dies or is
          dropped.

        Raises ValueError if the selection has no link or an option is invalid, and BadUrl if the
        link does not lead to a page (`mailto:`, ...).
        """
        if unknown or target is NOTHING:
            raise unknown_word("follow", unknown)
        link = target if isinstance(target, str) else next(links_of(target), None)
        if link is None:
            raise ValueError(f"nothing to follow on {self.url}")
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=files)
        how = Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            session,
            accept,
            max_retries,
            not_before,
            on_failure,
        )
        return self._tasks([self.urljoin(link)], how)[0]

    def follow_all(
        self,
        targets: str | Selection | Iterable[Link] = NOTHING,
        handler: Handler | None = None,
        *,
        priority: int | None = None,
        meta: Mapping[str, Any] | None = None,
        method: str | None = None,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | None = None,
        form: FormFields | None = None,
        json: Any = None,
        files: Files | bool | None = None,
        dont_filter: bool = False,
        chain: str | None = None,
        proxy_pool: str | None = None,
        session: str | None = None,
        accept: Iterable[int] = (),
        max_retries: int | None = None,
        not_before: datetime | str | None = None,
        on_failure: Handler | None = None,
        allow: str | Iterable[str] = (),
        deny: str | Iterable[str] = (),
        within: str | Selection | None = None,
        nofollow: bool = False,
        **unknown: Never,
    ) -> list[Task]:
        """The tasks to fetch all links of a CSS query, a selection or a list.

            yield from page.follow_all("a.product", self.product)
            yield from page.follow_all("a", allow="/catalog", deny="/*?sort=")

        A string is always CSS, never a URL. Links that do not lead to a page are skipped. Options
        that are not named here are those of `follow`.

        - `allow`, `deny`: only links whose addresses match a pattern of `allow` and none of `deny`.
          Patterns are written as in robots.txt: "/product/", "/*?sort=", "*.pdf$".
        - `within`: CSS of the parts of the page that the links must be in.
        - `nofollow=True` leaves out links with rel=nofollow.
        - `files=False` leaves out links to files that are not pages, judged by their extensions.

        Raises ValueError if an option is invalid.
        """
        if unknown or targets is NOTHING:
            raise unknown_word("follow_all", unknown)
        wanted = link_filter(allow, deny, files)
        uploads = None if isinstance(files, bool) else files
        links = self._links(targets, within, nofollow=nofollow)
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=uploads)
        how = Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            session,
            accept,
            max_retries,
            not_before,
            on_failure,
        )
        addresses = self._pages(links)
        if wanted is not None:
            links = addresses = filter(wanted.wants, addresses)
        tasks = self._tasks(islice(addresses, self.max_links), how)
        if len(tasks) == self.max_links:
            self.links_cut += sum(1 for _ in links)
        return tasks

    def submit(
        self,
        form: str | Selection = NOTHING,
        values: Mapping[str, Any] | None = None,
        handler: Handler | None = None,
        *,
        button: str | Selection | None = None,
        priority: int | None = None,
        meta: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        dont_filter: bool = False,
        chain: str | None = None,
        proxy_pool: str | None = None,
        session: str | None = None,
        accept: Iterable[int] = (),
        max_retries: int | None = None,
        not_before: datetime | str | None = None,
        on_failure: Handler | None = None,
        **unknown: Never,
    ) -> Task:
        """The task to send a form of this page, as a browser would. The handler reads the response.

            yield page.submit("form#search", {"q": "shoes", "in_stock": True}, self.results)

        `form` and `button` are CSS queries or selections; the first match counts. Without a
        `button`, the form is sent as if somebody pressed Enter.

        A value is text or a number; True or False for a check box; a name and bytes for a file; a
        list where a field takes several. None leaves the field out. Fields without a value here
        are sent as they are on the page.

        If the page was fetched with an account, the form is sent with the same one, because its
        hidden fields belong to it. A `session` given here overrides that. Other options are those
        of `follow`.

        Raises ValueError if there is no such form, field, choice or button, BadUrl if the form does
        not lead to a page, and Unparsable if the form is too large.
        """
        if unknown or form is NOTHING:
            raise unknown_word("submit", unknown)
        try:
            submission = self._form(form).submission(values or {}, self._pressed(button))
            sent, action = submission.sent(headers), submission.action
            # An empty action leads to the page itself, whatever its base is.
            url = self.urljoin(action) if action else urls.join(urls.parse(self.url), "")
            address = submission.address(url)
        except ValueError as error:
            named = form if isinstance(form, str) else "a form"
            raise ValueError(f"{named} on {self.url}: {error}") from None
        whose = self.session if session is None else session
        how = Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            whose,
            accept,
            max_retries,
            not_before,
            on_failure,
        )
        return self._tasks([address], how)[0]

    def file(
        self,
        target: Link | None,
        *,
        item: Any,
        field: str = DEFAULT_FIELD,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
        proxy_pool: str | None = None,
        session: str | None = None,
    ) -> ItemFiles:
        """A file that belongs to an item, at a URL or at the link in a selection.

            yield page.file(page.css("a.datasheet"), item=product)

        Yielding it also yields the item. The file is fetched like a page, before other pages of its
        host, and stored once however often it is named. Exports say under `field` where it is, or
        why it is missing; a bad address does no other harm to the item. None, or a selection
        without a link, means no file.

        For `proxy_pool` and `session` see `follow`.
        """
        links = () if target is None else islice(links_of(target), 1)
        return self._files(links, item, field, priority, headers, proxy_pool, session)

    def files(
        self,
        targets: str | Selection | Iterable[Link],
        *,
        item: Any,
        field: str = DEFAULT_FIELD,
        priority: int | None = None,
        headers: Mapping[str, str] | None = None,
        proxy_pool: str | None = None,
        session: str | None = None,
    ) -> ItemFiles:
        """All files of a CSS query, a selection or a list that belong to an item: see `file`.

            yield page.files("img.gallery", item=product)

        A string is always CSS. The file of an `img` is at its `src`, that of a link at its `href`.
        """
        links = self._links(targets, None, nofollow=False)
        return self._files(links, item, field, priority, headers, proxy_pool, session)

    def _files(
        self,
        links: Iterable[str],
        item: Any,
        field: str,
        priority: int | None,
        headers: Mapping[str, str] | None,
        proxy_pool: str | None,
        session: str | None,
    ) -> ItemFiles:
        check_session(self.task.session if session is None else session, proxy_pool)
        how = FileOptions(priority, headers, proxy_pool, session)
        return files_for(self, links, item, field, how)

    def _links(
        self,
        targets: str | Selection | Iterable[Link],
        within: str | Selection | None,
        *,
        nofollow: bool,
    ) -> Iterator[str]:
        found = self.css(targets) if isinstance(targets, str) else targets
        if within is None and not nofollow:
            return links_in(found) if isinstance(found, Selection) else links_of_each(found)
        if not isinstance(found, Selection):
            raise ValueError("within= and nofollow= need a CSS query or a selection")
        regions = None if within is None else self._selected(within)
        return links_inside(found, regions, nofollow=nofollow)

    def _form(self, form: str | Selection) -> Form:
        node = next(elements_in(self._selected(form)), None)
        if node is None or node.tag != "form":
            raise ValueError("no such form" if node is None else f"<{node.tag}> is not a form")
        (root,) = self._parsed()
        return Form(root, node, markup.charset(self.body, self._content_type))

    def _pressed(self, button: str | Selection | None) -> list[LexborNode] | None:
        return None if button is None else list(elements_in(self._selected(button)))

    def _selected(self, query: str | Selection) -> Selection:
        return self.css(query) if isinstance(query, str) else query

    def _pages(self, links: Iterable[str]) -> Iterator[str]:
        """The addresses of the links that lead to pages."""
        base = self._base_url()
        for link in links:
            try:
                yield urls.join(base, link)
            except BadUrl:
                continue

    def _tasks(self, addresses: Iterable[str], how: Following) -> list[Task]:
        if self._followed_at is None:
            self._followed_at = datetime.now(UTC).replace(microsecond=0)
        return children(self.task, self.fingerprint, self._followed_at, addresses, how)
