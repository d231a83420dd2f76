"""Pages: text whatever the bytes, JSON, links, follow-ups."""

from __future__ import annotations

import codecs
import encodings.aliases
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from shoal.core.task import Task
from shoal.errors import BadUrl, MissingExtra
from shoal.spider.page import Page
from shoal.spider.spider import Spider

HTML = "text/html"


def page_of(
    body: bytes | str = b"",
    content_type: str | None = HTML,
    url: str = "https://shop.example/catalog/list?page=1",
    task: Task | None = None,
) -> Page:
    headers = CIMultiDict({"content-type": content_type} if content_type else {})
    return Page(
        url=url,
        status=200,
        headers=headers,
        body=body.encode() if isinstance(body, str) else body,
        task=task or Task(url=url),
        fingerprint=bytes(range(8)),
    )


def urls_of(tasks: list[Task]) -> list[str]:
    return [task.url for task in tasks]


# Sessions

FORM = "<form action=/buy method=post></form><a href=/1></a>"


def page_with(session: str | None, fetched_with: str | None = None) -> Page:
    page = page_of(FORM, task=Task(url="https://shop.example/", session=session))
    page.session = fetched_with
    return page


@pytest.mark.parametrize("session", [None, "shop", "shop#alice", "none"])
def test_links_keep_the_session_of_their_page(session: str | None) -> None:
    page = page_with(session, "shop#alice" if session else None)
    assert page.follow("/2").session == session
    assert {task.session for task in page.follow_all("a")} == {session}


def test_another_session() -> None:
    page = page_with("shop", "shop#alice")
    assert page.follow("/2", session="staff").session == "staff"
    assert page.follow_all("a", session="none")[0].session == "none"
    assert page.submit("form", session="shop#bob").session == "shop#bob"


def test_a_form_is_sent_by_who_has_it() -> None:
    assert page_with("shop", "shop#alice").submit("form").session == "shop#alice"
    assert page_with("shop").submit("form").session == "shop"
    assert page_with(None).submit("form").session is None


@pytest.mark.parametrize("session", ["", 5, "x" * 101])
def test_what_is_no_session(session: Any) -> None:
    with pytest.raises(ValueError, match="a session must be text of 1 to 100 characters"):
        page_with("shop", "shop#alice").follow("/2", session=session)


def test_a_session_has_exits_of_its_own() -> None:
    page = page_with("shop", "shop#alice")
    for session in (None, "shop"):
        with pytest.raises(ValueError, match="uses the exits of its group"):
            page.follow("/2", proxy_pool="dc", session=session)
    task = page.follow("/2", proxy_pool="dc", session="none")
    assert (task.proxy_pool, task.session) == ("dc", "none")


# Text


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("grün".encode(), "text/html; charset=utf-8", "grün"),
        ("grün".encode("latin-1"), "text/html; charset=ISO-8859-1", "grün"),
        ("grün".encode("cp1251", "ignore"), "text/html; charset=windows-1251", "grn"),
        ("привет".encode("koi8-r"), 'text/html; charset="koi8-r"', "привет"),
        (codecs.BOM_UTF8 + "grün".encode(), "text/html; charset=latin-1", "grün"),
        (codecs.BOM_UTF16_LE + "grün".encode("utf-16-le"), HTML, "grün"),
        ('<meta charset="gbk">中'.encode("gbk"), HTML, '<meta charset="gbk">中'),
        ("grün".encode(), None, "grün"),
        ("grün".encode("cp1252"), None, "grün"),
        ("grün €".encode("cp1252"), "text/html; charset=no-such-thing", "grün €"),
        ("grün".encode(), "text/html; charset=unicode_escape", "grün"),
        ("grün".encode(), "text/html; charset=punycode", "grün"),
        ("grün".encode(), "text/html; charset=base64", "grün"),
        (b"a\xffb", "text/html; charset=utf-8", "a\ufffdb"),
        (b"", None, ""),
    ],
)
def test_text_finds_the_charset(body: bytes, content_type: str | None, expected: str) -> None:
    assert page_of(body, content_type).text == expected


@pytest.mark.parametrize("charset", sorted(set(encodings.aliases.aliases.values())))
@pytest.mark.parametrize("body", [b"<p>\x00\xff\x80\\x\xfe</p>", bytes(range(256))])
def test_no_charset_that_python_knows_makes_text_or_css_raise(charset: str, body: bytes) -> None:
    page = page_of(body, f"text/html; charset={charset}")
    page.text.encode()
    page.css("p").getall()


@example(body=b"{}", content_type=None)
@given(body=st.binary(), content_type=st.none() | st.text(max_size=60))
def test_reading_hostile_bytes_never_raises(body: bytes, content_type: str | None) -> None:
    page = page_of(body, content_type)
    page.text.encode()
    page.css("*::text, a, ::attr(x)").getall()
    page.follow_all("*")
    page.xpath("//a/@href").getall()


_PIECES = ["<a ", "<base ", "href=", "http://", "[", "'", '"', ">", "/", "#", "\ud800", "\0", "é"]


@given(pieces=st.lists(st.sampled_from(_PIECES)))
def test_hostile_links_are_followed_or_skipped(pieces: list[str]) -> None:
    page = page_of("".join(pieces).encode("utf-8", "surrogatepass"))
    for task in page.follow_all("a, base"):
        assert task.url.startswith(("http://", "https://"))


@given(link=st.text(st.characters(exclude_categories=())))
def test_follow_raises_bad_url_or_nothing(link: str) -> None:
    page = page_of()
    try:
        task = page.follow(link)
    except BadUrl:
        assert page.follow_all([link]) == []
    else:
        assert page.follow_all([link]) == [task]


# JSON


def test_json() -> None:
    assert page_of('{"a": [1, 2.5, null]}', "application/json").json() == {"a": [1, 2.5, None]}
    assert page_of(codecs.BOM_UTF8 + b"[1]").json() == [1]


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"{", b"[" * 100_000, b"[NaN]"])
def test_garbage_is_no_json_and_the_url_is_named(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"https://shop\.example/catalog/list\?page=1 is not JSON"):
        page_of(body).json()


# CSS and XPath


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"", HTML),
        (b" \n", HTML),
        (b"\x89PNG\r\n\x1a\n\0\0\0\r", "image/png"),
        (b"\0\1\2<p>", None),
    ],
)
def test_nothing_is_found_in_a_body_without_markup(body: bytes, content_type: str | None) -> None:
    page = page_of(body, content_type)
    for query in ("html", "p", "*", "::text"):
        assert page.css(query).getall() == []
        assert page.css(query).get() is None
    assert page.follow_all("a") == []
    with pytest.raises(ValueError, match="not a CSS selector"):
        page.css("a[")


def test_html_with_a_stray_nul_is_still_html() -> None:
    assert page_of(b"\0<p>x</p>").css("p::text").get() == "x"
    assert page_of("<p>x</p>".encode("utf-16"), None).css("p::text").get() == "x"


def test_a_page_is_parsed_once() -> None:
    page = page_of("<p>x</p>")
    assert page.css("p")._scope is page.css("a")._scope
    assert page.text is page.text


def test_a_large_page_is_not_refused_for_tags_that_need_no_end() -> None:
    body = "<ul>" + "<li>item<br><img src=x>" * 20_000 + "</ul>"
    assert len(page_of(body).css("li")) == 20_000


def test_xpath() -> None:
    page = page_of('<a href="/x">one</a><a>two</a>')
    assert page.xpath("//a/text()").getall() == ["one", "two"]
    assert page.xpath("//a[text()=$name]/text()", name="two").get() == "two"


def test_xpath_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "parsel", None)
    with pytest.raises(MissingExtra, match=r"pip install 'shoal\[xpath\]'"):
        page_of("<p>").xpath("//p")


# Links


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("item/1", "https://shop.example/catalog/item/1"),
        ("/item/1#top", "https://shop.example/item/1"),
        ("?page=2", "https://shop.example/catalog/list?page=2"),
        ("../a/./b", "https://shop.example/a/b"),
        ("//other.example/x", "https://other.example/x"),
        (" HTTP://Other.Example:80/x\n", "http://other.example/x"),
        ("", "https://shop.example/catalog/list?page=1"),
    ],
)
def test_urljoin(link: str, expected: str) -> None:
    assert page_of().urljoin(link) == expected
    assert page_of().follow(link).url == expected


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ('<base href="/deep/">', "https://shop.example/deep/x"),
        ('<BASE HREF="http://cdn.example/a/b">', "http://cdn.example/a/x"),
        ('<base target="_blank">', "https://shop.example/catalog/x"),
        ('<base href="mailto:me">', "https://shop.example/catalog/x"),
        ('<base href="http://[">', "https://shop.example/catalog/x"),
        ("<!-- <base href='/no/'> -->", "https://shop.example/catalog/x"),
    ],
)
def test_links_are_relative_to_the_base(base: str, expected: str) -> None:
    page = page_of(f"<head>{base}</head><a href=x>")
    assert page.urljoin("x") == expected
    assert urls_of(page.follow_all("a")) == [expected]


@pytest.mark.parametrize(
    "link", ["mailto:me@shop.example", "javascript:void(0)", "http://[", "ftp://x/"]
)
def test_what_leads_to_no_page_is_a_bad_url_to_follow_and_skipped_by_follow_all(link: str) -> None:
    page = page_of(f'<a href="{link}"></a><a href="/good"></a>')
    with pytest.raises(BadUrl):
        page.follow(link)
    assert urls_of(page.follow_all("a")) == ["https://shop.example/good"]
    assert urls_of(page.follow_all([link, "/good"])) == ["https://shop.example/good"]


@pytest.mark.parametrize("target", [None, 5, b"/x", object()])
def test_nothing_cannot_be_followed(target: Any) -> None:
    with pytest.raises(ValueError, match="follow"):
        page_of().follow(target)


def test_an_empty_selection_cannot_be_followed() -> None:
    page = page_of("<a>no link</a>")
    for selection in (page.css("a"), page.css("b"), page.css("a::attr(href)"), page.xpath("//b")):
        with pytest.raises(ValueError, match="nothing to follow"):
            page.follow(selection)
        assert page.follow_all(selection) == []


def test_selections_are_followed_by_href_src_or_value() -> None:
    page = page_of('<p><a href="/1">x</a><a>none</a><img src="/2"><iframe src="/3"></iframe></p>')
    everything = ["https://shop.example/1", "https://shop.example/2", "https://shop.example/3"]
    assert urls_of(page.follow_all("a, img, iframe")) == everything
    assert urls_of(page.follow_all("::attr(href), ::attr(src)")) == everything
    assert urls_of(page.follow_all(page.css("a, img, iframe"))) == everything
    assert urls_of(page.follow_all(list(page.css("a, img, iframe")))) == everything
    assert urls_of(page.follow_all(["/1", None, page.css("img"), "/3"])) == everything  # type: ignore[list-item]
    assert page.follow(page.css("img")).url == everything[1]
    assert page.follow(page.css("a::attr(href)")).url == everything[0]


def test_selectors_of_parsel_can_be_followed() -> None:
    page = page_of('<a href="/1">x</a><img src="/2">')
    assert page.follow(page.xpath("//a")[0]).url == "https://shop.example/1"
    assert page.follow(page.xpath("//a/@href")).url == "https://shop.example/1"
    assert urls_of(page.follow_all(page.xpath("//a | //img"))) == [
        "https://shop.example/1",
        "https://shop.example/2",
    ]


def test_a_string_is_css_to_follow_all_and_a_url_to_follow() -> None:
    page = page_of('<main><a href="/x">x</a></main>')
    assert urls_of(page.follow_all("main a")) == ["https://shop.example/x"]
    assert page.follow("main").url == "https://shop.example/catalog/main"


# Tasks


class Shop(Spider):
    def parse(self, page: Page) -> None: ...

    def product(self, page: Page) -> None: ...


def test_a_follow_up_knows_where_it_comes_from() -> None:
    page = page_of(task=Task(url="https://shop.example/", depth=4, meta={"a": 1}))
    task = page.follow("/x")
    assert page.meta == {"a": 1}
    assert (task.depth, task.parent) == (5, "0001020304050607")
    assert (task.job_type, task.priority, task.meta, task.method) == ("parse", 0, {}, "GET")
    assert task.created_at is not None
    assert page.follow("/y").created_at is task.created_at


def test_a_follow_up_takes_what_it_is_told() -> None:
    notes = {"page": 2}
    task = page_of().follow(
        "/x",
        Shop().product,
        priority=10,
        meta=notes,
        method="post",
        headers={"X": "y"},
        body="q=1",
        dont_filter=True,
        chain="account-17",
    )
    notes["page"] = 3
    assert (task.job_type, task.priority, task.meta) == ("product", 10, {"page": 2})
    assert (task.method, task.headers, task.body) == ("POST", {"X": "y"}, "q=1")
    assert task.dont_filter
    assert task.chain == "account-17"


def test_follow_all_passes_its_options_on() -> None:
    options: dict[str, Any] = {"priority": 3, "meta": {"a": 1}, "chain": "c"}
    tasks = page_of("<a href=1><a href=2>").follow_all("a", "product", **options)
    assert [(task.job_type, task.priority, task.meta, task.chain) for task in tasks] == [
        ("product", 3, {"a": 1}, "c")
    ] * 2
    tasks[0].meta["a"] = 2
    assert tasks[1].meta == {"a": 1}


@pytest.mark.parametrize("chain", ["", "x" * 201, 17, b"x", ["x"]])
def test_a_chain_has_a_name(chain: Any) -> None:
    with pytest.raises(ValueError, match="a chain must be text of 1 to 200 characters, not "):
        page_of().follow("/x", chain=chain)
    with pytest.raises(ValueError, match="a chain must be text of"):
        page_of("<a href=1>").follow_all("a", chain=chain)


@pytest.mark.parametrize("handler", [lambda page: None, object(), "", "no name", 5])
def test_a_handler_is_a_method_or_its_name(handler: Any) -> None:
    with pytest.raises(ValueError, match="a handler must be a method of the spider"):
        page_of().follow("/x", handler)


def test_follow_all_gives_no_more_links_than_it_may() -> None:
    page = page_of("<a href=mailto:x></a>" + "".join(f"<a href=/{n}></a>" for n in range(9)))
    page.max_links = 4
    assert [task.url[-1] for task in page.follow_all("a")] == ["0", "1", "2", "3"]
    assert page.links_cut == 5
    assert len(page.follow_all(["/a", "/b", "/c", "/d"])) == 4
    assert page.links_cut == 5
