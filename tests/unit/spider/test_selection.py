"""Selections: Scrapy's CSS, lazily. Parsel is the reference where both can be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parsel import Selector
from selectolax.lexbor import LexborHTMLParser, LexborNode

from shoal.spider.selection import Selection, links_in, parse_query

SHOP = """
<html><head><title>Shop</title></head><body>
<h1>Big <b>blue</b> chair</h1>
<ul id="menu">
<li class="x"><a href="/a">A</a></li><li><a>no link</a></li><li><a href="">B</a></li>
</ul>
<p title="one, two">first</p><p>second<br>third</p>
<img src="/i.png" alt><source src="/s.mp4">
</body></html>
"""


def root_of(html: str) -> LexborNode:
    root = LexborHTMLParser(html).root
    assert root is not None
    return root


def select(query: str, html: str = SHOP) -> Selection:
    return Selection([root_of(html)], parse_query(query))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("title::text", ["Shop"]),
        ("h1::text", ["Big ", " chair"]),
        ("h1 ::text", ["Big ", "blue", " chair"]),
        ("h1 *::text", ["Big ", "blue", " chair"]),
        ("h1 > ::text", ["blue"]),
        ("h1 > *::text", ["blue"]),
        ("a::attr(href)", ["/a", ""]),
        ("a::attr( href )", ["/a", ""]),
        ("A::ATTR(HREF)", ["/a", ""]),
        ("#menu ::attr(href)", ["/a", ""]),
        ("#menu ::attr(id)", ["menu"]),
        ("#menu > ::attr(id)", []),
        ("img::attr(alt)", [""]),
        ("p::text", ["first", "second", "third"]),
        ("b", ["<b>blue</b>"]),
        ("p::text, b::text", ["first", "second", "third", "blue"]),
        ("b, title::text", ["<b>blue</b>", "Shop"]),
        ("p[title='one, two']::text, b::text", ["first", "blue"]),
        ('p[title="one, two"]', ['<p title="one, two">first</p>']),
        ("p:is(.none, [title])::text, b::text", ["first", "blue"]),
        ("nothing", []),
        ("nothing::text", []),
        ("nothing::attr(x)", []),
        ("b::attr(none)", []),
    ],
)
def test_a_query_finds_what_scrapy_finds(query: str, expected: list[str]) -> None:
    selection = select(query)
    assert selection.getall() == expected
    assert selection.get() == (expected[0] if expected else None)
    assert select(query).get() == selection.get()  # before anything was listed
    assert len(selection) == len(expected)
    assert bool(select(query)) is bool(expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("div::text", ["a", "b", "d", "e", "f"]),
        ("div ::text", ["a", "b", "c", "d", "e", "f"]),
        ("div::attr(id)", ["1", "2", "3"]),
        ("div ::attr(id)", ["1", "2", "3"]),
    ],
)
def test_matches_inside_matches_keep_the_documents_order(query: str, expected: list[str]) -> None:
    html = "<div id=1>a<div id=2>b<p>c</p>d</div>e</div><div id=3>f</div>"
    assert select(query, html).getall() == expected


def test_a_list_without_pseudo_elements_is_in_document_order_and_has_nothing_twice() -> None:
    selection = select("ul, li.x, li, [class]")
    assert [one.attrib for one in selection] == [{"id": "menu"}, {"class": "x"}, {}, {}]


def test_get_gives_the_default_where_nothing_is() -> None:
    assert select("h6::text").get("none") == "none"
    assert select("h1::text").get("none") == "Big "


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "a[",
        "a,",
        "::nope",
        "a::text::text",
        "a::text b",
        "a,,b::text",
        "a{}",
        "> a",
        "\ud800",
    ],
)
def test_an_invalid_selector_is_named(query: str) -> None:
    with pytest.raises(ValueError, match="not a CSS selector") as raised:
        select(query)
    assert repr(query) in str(raised.value)


def test_an_error_does_not_spoil_the_queries_after_it() -> None:
    with pytest.raises(ValueError, match="a:unknown"):
        select("a:unknown")
    assert select("b::text").get() == "blue"


def test_selections_can_be_searched_again() -> None:
    items = select("li")
    assert [item.css("a::text").get() for item in items] == ["A", "no link", "B"]
    assert items.css("a::text").getall() == ["A", "no link", "B"]
    assert items.css("li").getall() == items.getall()  # an element is found in itself
    assert items[0].css("::attr(href)").get() == "/a"
    assert items[0].css("::text").getall() == ["A"]


def test_texts_and_values_have_nothing_below_them() -> None:
    texts = select("h1::text")
    assert texts.css("b").getall() == []
    assert texts.css("b").get() is None
    assert texts.attrib == {}
    assert [one.get() for one in texts] == ["Big ", " chair"]


def test_indexing() -> None:
    items = select("li")
    assert items[-1].css("a::text").get() == "B"
    assert items[1:].css("a::text").getall() == ["no link", "B"]
    assert len(items[5:]) == 0
    with pytest.raises(IndexError):
        items[3]


def test_attrib_is_of_the_first_element() -> None:
    assert select("img").attrib == {"src": "/i.png", "alt": ""}
    assert select("h6").attrib == {}


def test_links_are_the_href_or_the_src_or_the_value() -> None:
    assert list(links_in(select("a, img, source"))) == ["/a", "", "/i.png", "/s.mp4"]
    assert list(links_in(select("img::attr(alt), a::attr(href)"))) == ["", "/a", ""]


def test_get_does_not_read_the_whole_page() -> None:
    """The second h1 is never turned into text: `.get()` asks Lexbor for the first match only."""

    class OnlyFirst:
        def css_first(self, query: str) -> LexborNode | None:
            return root_of("<h1 id=x>first</h1>").css_first(query)

        def css(self, query: str) -> list[LexborNode]:
            raise AssertionError("built the whole list")

    for query, expected in [
        ("h1::text", "first"),
        ("h1 ::text", "first"),
        ("h1::attr(id)", "x"),
        ("h1", '<h1 id="x">first</h1>'),
    ]:
        lazy = Selection([OnlyFirst()], parse_query(query))  # type: ignore[list-item]
        assert lazy
        assert lazy.get() == expected


# Trees that HTML's rules do not rearrange, so that lxml and Lexbor build the same one.
_texts = st.sampled_from(["a", "b ", "\n", "x, y"])
_trees = st.recursive(
    _texts,
    lambda inner: st.builds(
        lambda tag, attribute, children: f"<{tag}{attribute}>{''.join(children)}</{tag}>",
        st.sampled_from(["div", "section", "span"]),
        st.sampled_from(["", " id=i", " class=c", " class='c d' id=''"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)
_simple = st.sampled_from(["div", "span", "section", ".c", "#i", "*", "div:not(.c)", "span[id]"])
_compound = st.lists(_simple, min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([" ", " > ", " + ", " ~ "]).map(lambda sign: sign.join(parts))
)
_pseudo = st.sampled_from(["::text", " ::text", " > ::text", "::attr(id)", " ::attr(id)", ""])


@given(tree=_trees, selector=_compound, pseudo=_pseudo)
def test_it_agrees_with_parsel(tree: str, selector: str, pseudo: str) -> None:
    html = f"<html><head></head><body><div>{tree}</div></body></html>"
    query = selector + pseudo
    expected = Selector(text=html).css(query).getall()
    found = select(query, html)
    if pseudo:
        assert found.getall() == expected
        assert select(query, html).get() == (expected[0] if expected else None)
    else:
        assert len(found) == len(expected)


@given(html=st.text(), query=st.text(max_size=20))
def test_any_query_on_any_text_finds_something_or_is_a_value_error(html: str, query: str) -> None:
    try:
        selection = select(query, html)
    except ValueError:
        return
    assert all(isinstance(found, str) for found in selection.getall())


_AWKWARD = "a \0 &#0; <svg> <![CDATA[ ]]> <title> <script> </script> <plaintext> <table> <select>"


@given(parts=st.lists(st.sampled_from([*_AWKWARD.split(" "), "<p x='\0'>", "</p>", "<textarea>"])))
def test_a_parser_never_lets_nul_into_a_tree(parts: list[str]) -> None:
    """Texts are joined with NUL to be split again, which stands on this."""
    root = root_of("".join(parts))
    texts = [node.text_content for node in root.traverse(include_text=True)]
    assert [text for text in texts if text is not None] == select("::text", "".join(parts)).getall()
