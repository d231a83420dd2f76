"""A fetched page: what it says, and what to follow from it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Never

import can_ada
import msgspec
from multidict import CIMultiDict
from selectolax.lexbor import LexborNode

from shoal.core import bodies, urls
from shoal.core.bodies import Files, FormFields, Sent
from shoal.core.files import DEFAULT_FIELD
from shoal.core.identities import NO_SESSION
from shoal.core.policy import parse_duration
from shoal.core.task import DEFAULT_HANDLER, MAX_CHAIN_LENGTH, MAX_SESSION_LENGTH, Task
from shoal.errors import BadUrl, MissingExtra, Unparsable
from shoal.spider import markup, trial
from shoal.spider.effort import Shape
from shoal.spider.files import FileOptions, ItemFiles, files_for
from shoal.spider.forms import Form
from shoal.spider.link_filter import link_filter
from shoal.spider.links import links_inside, links_of, links_of_each
from shoal.spider.scrapy_words import unknown_word
from shoal.spider.selection import Selection, elements_in, links_in, parse_query

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

    from shoal.spider.links import Link

Handler = Callable[..., Any] | str
"""A method of the spider, or its name."""

_BASE_TAG = re.compile(rb"<base", re.IGNORECASE)


class _Following(msgspec.Struct):
    """How links are to be followed: what `Page.follow` and `Page.follow_all` are told."""

    handler: Handler | None
    priority: int | None
    meta: Mapping[str, Any] | None
    sent: Sent
    dont_filter: bool
    chain: str | None
    proxy_pool: str | None
    session: str | None
    accept: tuple[int, ...]
    max_retries: int | None
    not_before: datetime | None
    on_failure: str

    @property
    def is_usual(self) -> bool:
        """Whether it says nothing that few links have."""
        return not (
            self.accept or self.on_failure or self.max_retries is not None or self.not_before
        )


class Page:
    """One response, as a handler sees it. It is parsed once, when it is first read."""

    __slots__ = (
        "_base",
        "_flaw",
        "_followed_at",
        "_is_tried",
        "_parsel",
        "_scope",
        "_shape",
        "_text",
        "body",
        "fingerprint",
        "headers",
        "links_cut",
        "max_links",
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
        """The account that it was fetched with, `shop#alice`. None: without one."""
        self.max_links: int | None = None
        """Links that `follow_all` gives at most: a page may have a million."""
        self.links_cut = 0
        """Those that it left out."""
        self._text: str | None = None
        self._scope: Sequence[LexborNode] | None = None
        self._shape: Shape | None = None
        self._flaw: Unparsable | None = None
        self._is_tried = False
        self._base: can_ada.URL | None = None
        self._parsel: Selector | None = None
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
        """A page that was not fetched, for tests of handlers. Text is UTF-8. `meta` are the notes
        that come with its task; or it is the page of a whole `task`. Raises BadUrl."""
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
        """The same for an answer that is JSON: of this value."""
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

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    @property
    def meta(self) -> dict[str, Any]:
        """The notes that came with the task: its `meta`."""
        return self.task.meta

    @property
    def text(self) -> str:
        """The body as text. What cannot be decoded becomes U+FFFD."""
        if self._text is None:
            self._text = markup.text(self.body, self._content_type)
        return self._text

    def json(self) -> Any:
        """The body as JSON. Raises ValueError if it is not."""
        try:
            return msgspec.json.decode(self.text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ValueError(f"{self.url} is not JSON: {error}") from None

    def css(self, query: str) -> Selection:
        """What a CSS query finds: see `selection.py`. Raises ValueError if it is not CSS."""
        return Selection(self._parsed(), parse_query(query), self._shape)

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

    @property
    def visible_text(self) -> str:
        """The text of an HTML page as people see it; empty for what cannot be parsed."""
        try:
            return markup.visible_text(self._parsed())
        except Unparsable:
            return ""

    def xpath(self, query: str, **variables: Any) -> SelectorList[Selector]:
        """What an XPath query finds, as parsel's selectors. Needs the extra `xpath`. Raises
        Unparsable."""
        if self._parsel is None:
            try:
                from parsel import Selector
            except ImportError:
                raise MissingExtra("page.xpath()", "xpath") from None
            if self._flaw is not None:
                raise self._flaw
            if not self._is_tried:
                markup.refuse_endless(self.text.encode("utf-8", "replace"))
            self._parsel = Selector(text=self.text, type="html")  # Else it guesses.
        return self._parsel.xpath(query, **variables)

    def urljoin(self, link: str) -> str:
        """The absolute address of a link on this page. Raises BadUrl."""
        return urls.join(self._base_url(), link)

    def follow(
        self,
        target: Link,
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
        """The task to fetch a URL, or the link of a selection, and read it with the handler.

        Without a handler that is `parse`. A `form` is sent urlencoded, and multipart if there are
        `files`: for each name a file's name and its bytes, and its media type if that does not
        follow from the name.

        Tasks of one `chain`, a name of your choice, are done one after the other in the order in
        which they are added, by whichever worker; of several chains side by side. With a
        `proxy_pool` it leaves by an exit of that pool; without, by one of the crawl's own pool if
        that has one, and "direct" is by none.

        It is fetched with the accounts that this page's own task names: with any of a group, or
        with a certain one. Another `session` is "shop", "shop#alice", or "none" for none.

        Its handler reads answers of 2xx, and of the statuses that it, or the spider, `accept`s. It
        is tried again so many times at most, in place of the crawl's own `max_retries`. It is sent
        `not_before` a moment, which knows its time zone, or so long from now: "10m". If it dies or
        is dropped, `on_failure` is called with a `Failure`: a method of the spider, or its name.

        Raises ValueError if there is no link in the selection or the body cannot be sent, and
        BadUrl if it does not lead to a page (`mailto:`, ...).
        """
        if unknown:
            raise unknown_word("follow", unknown)
        link = target if isinstance(target, str) else next(links_of(target), None)
        if link is None:
            raise ValueError(f"nothing to follow on {self.url}")
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=files)
        how = _Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            session,
            accepted(accept),
            max_retries,
            _moment(not_before),
            "" if on_failure is None else handler_name(on_failure),
        )
        return self._tasks([self.urljoin(link)], how)[0]

    @property
    def is_html(self) -> bool:
        """Whether the server calls it HTML."""
        return "html" in self._content_type.lower()

    def follow_all(
        self,
        targets: str | Selection | Iterable[Link],
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
        """The tasks to fetch all links that a CSS query finds, of a selection, or in a list: see
        `follow`.

        A string is always CSS. What does not lead to a page is skipped.

        Of these, links are followed whose addresses one of the patterns of `allow` fits, and none
        of `deny`: texts as in robots.txt, `"/product/"`, `"/*?sort="`, `"*.pdf$"`. `within` is CSS
        of the parts of the page that they are in. With `nofollow` those are left out that say
        rel=nofollow, and with `files=False` those to files that are no pages, by their endings.
        Raises ValueError for what is no pattern.
        """
        if unknown:
            raise unknown_word("follow_all", unknown)
        wanted = link_filter(allow, deny, files)
        uploads = None if isinstance(files, bool) else files
        links = self._links(targets, within, nofollow=nofollow)
        sent = bodies.sent(method, headers, body=body, form=form, json=json, files=uploads)
        how = _Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            session,
            accepted(accept),
            max_retries,
            _moment(not_before),
            "" if on_failure is None else handler_name(on_failure),
        )
        addresses = self._pages(links)
        if wanted is not None:
            links = addresses = filter(wanted.wants, addresses)
        tasks = self._tasks(islice(addresses, self.max_links), how)
        if len(tasks) == self.max_links:
            self.links_cut += sum(1 for _ in links)
        return tasks

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
            raise ValueError("within= and nofollow= go with a CSS query, or a selection")
        return links_inside(
            found, self.css(within) if isinstance(within, str) else within, nofollow=nofollow
        )

    def submit(
        self,
        form: str | Selection,
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
        """The task to send a form of this page as a browser would, with these values, and read the
        answer with the handler.

        `form` and `button` are CSS queries or selections, of which the first counts; without a
        button it is the one that Enter would press. A value is text or a number; for a check box
        also True or False; for a file its name and its bytes; a list where there are several. None:
        the field is not sent. Fields that get no value are sent as the page has them.

        On a page that was fetched with an account, it is sent with the same account: what is hidden
        in the form belongs to it. Only a `session` that is given here changes that.

        Raises ValueError if there is no such form, field, choice or button, BadUrl if the form does
        not lead to a page, and Unparsable if there is too much in it.
        """
        try:
            submission = self._form(form).submission(values or {}, self._pressed(button))
            sent, action = submission.sent(headers), submission.action
            # An action that is empty leads to the page itself, whatever its base is.
            url = self.urljoin(action) if action else urls.join(urls.parse(self.url), "")
            address = submission.address(url)
        except ValueError as error:
            named = form if isinstance(form, str) else "a form"
            raise ValueError(f"{named} on {self.url}: {error}") from None
        whose = self.session if session is None else session
        how = _Following(
            handler,
            priority,
            meta,
            sent,
            dont_filter,
            chain,
            proxy_pool,
            whose,
            accepted(accept),
            max_retries,
            _moment(not_before),
            "" if on_failure is None else handler_name(on_failure),
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
        """The file at a URL, or at the link of a selection, which belongs to an item. To be
        yielded: the item need not be yielded, too.

        It is fetched as pages are, before other pages of its host, and stored once however often it
        is named. Exports tell below `field` where it is, or why it is not there: an address that
        leads nowhere costs the item nothing else. None, or a selection without a link, is no file.

        By default it is fetched with the accounts of this page's own task: see `follow` for
        `proxy_pool` and `session`.
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
        """All files that a CSS query finds, of a selection, or in a list, which belong to an item:
        see `file`. A string is always CSS: `"img.gallery"` is the `src` of these, `"a.pdf"` the
        `href`."""
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
        _check_session(self.task.session if session is None else session, proxy_pool)
        how = FileOptions(priority, headers, proxy_pool, session)
        return files_for(self, links, item, field, how)

    def _form(self, form: str | Selection) -> Form:
        node = next(elements_in(self.css(form) if isinstance(form, str) else form), None)
        if node is None or node.tag != "form":
            raise ValueError("no such form" if node is None else f"<{node.tag}> is no form")
        (root,) = self._parsed()
        return Form(root, node, markup.charset(self.body, self._content_type))

    def _pressed(self, button: str | Selection | None) -> list[LexborNode] | None:
        if button is None:
            return None
        return list(elements_in(self.css(button) if isinstance(button, str) else button))

    def _pages(self, links: Iterable[str]) -> Iterator[str]:
        """The addresses of those links that lead to pages."""
        base = self._base_url()
        for link in links:
            try:
                yield urls.join(base, link)
            except BadUrl:
                continue

    def _tasks(self, addresses: Iterable[str], how: _Following) -> list[Task]:
        """The tasks to fetch addresses, as children of this page."""
        _check_chain(how.chain)
        session = self.task.session if how.session is None else how.session
        _check_session(session, how.proxy_pool)
        job_type = DEFAULT_HANDLER if how.handler is None else handler_name(how.handler)
        depth, parent, meta = self.task.depth + 1, self.fingerprint.hex(), how.meta
        method, headers, body, body_is_base64 = how.sent
        priority, dont_filter, chain = how.priority or 0, how.dont_filter, how.chain
        if self._followed_at is None:
            self._followed_at = datetime.now(UTC).replace(microsecond=0)
        tasks = [
            Task(
                url=url,
                job_type=job_type,
                method=method,
                headers={**headers} if headers else {},
                body=body,
                depth=depth,
                priority=priority,
                meta={**meta} if meta else {},
                parent=parent,
                created_at=self._followed_at,
                dont_filter=dont_filter,
                chain=chain,
                proxy_pool=how.proxy_pool,
                session=session,
            )
            for url in addresses
        ]
        if body_is_base64 or not how.is_usual:
            for task in tasks:
                task.body_is_base64 = body_is_base64
                task.accept, task.max_retries = how.accept, how.max_retries
                task.not_before, task.on_failure = how.not_before, how.on_failure
        return tasks

    async def _weigh(self) -> None:
        """Try an odd page in a process of its own, before it is read and while other pages have
        their turn. If it cannot be parsed, whoever reads it gets that error."""
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
                self._flaw = error  # To find it out again would take as long.
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


def accepted(statuses: Iterable[int]) -> tuple[int, ...]:
    """The statuses that are to be read beside 2xx, as tasks have them. Raises ValueError."""
    if isinstance(statuses, Iterable) and not isinstance(statuses, str | bytes):
        found = list(statuses)
        if all(type(each) is int and 300 <= each <= 599 for each in found):
            return tuple(sorted(set(found)))
    raise ValueError(
        f"accept lists statuses from 300 to 599, such as {{404}}; not {statuses!r:.80}"
    )


def _moment(not_before: datetime | str | None) -> datetime | None:
    if not_before is None:
        return None
    if isinstance(not_before, str):
        return datetime.now(UTC) + timedelta(seconds=parse_duration(not_before))
    if isinstance(not_before, datetime) and not_before.tzinfo is not None:
        return not_before.astimezone(UTC)
    raise ValueError(
        "not_before is a time from now ('10m'), or a datetime with a time zone;"
        f" not {not_before!r:.80}"
    )


def _check_chain(chain: str | None) -> None:
    if chain is None or (isinstance(chain, str) and 0 < len(chain) <= MAX_CHAIN_LENGTH):
        return
    raise ValueError(f"a chain is a text of 1 to {MAX_CHAIN_LENGTH} characters, not {chain!r:.80}")


def _check_session(session: str | None, proxy_pool: str | None) -> None:
    if session is None:
        return
    if not isinstance(session, str) or not 0 < len(session) <= MAX_SESSION_LENGTH:
        limit = f"1 to {MAX_SESSION_LENGTH} characters"
        raise ValueError(f"a session is a text of {limit}, not {session!r:.80}")
    if proxy_pool is not None and session != NO_SESSION:
        raise ValueError(
            f"proxy_pool={proxy_pool!r:.60}: the exits of a session are those of its group"
            f" (session={NO_SESSION!r} is without one)"
        )


def handler_name(handler: Handler) -> str:
    """The name of a method of the spider. Raises ValueError for what is none."""
    name = handler if isinstance(handler, str) else getattr(handler, "__name__", "")
    if not name.isidentifier():
        raise ValueError(f"a handler is a method of the spider, or its name; not {handler!r}")
    return name
