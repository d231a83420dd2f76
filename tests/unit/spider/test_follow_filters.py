"""Which links `follow_all` follows of those that it finds."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import Page, Task

URL = "https://shop.example/"
HTML = """
<nav><a href="/about">about</a> <a rel="Nofollow noopener" href="/login">log in</a></nav>
<main>
  <a href="/product/1">one</a> <div><a href="/product/2?sort=price">two</a></div>
  <a href="/files/manual.PDF">manual</a> <a href="/product/1.zip?x=1">zip</a>
  <div><main><a href="mailto:a@b.example">mail</a><a href="/product/3">three</a></main></div>
</main>
"""


def page_of(html: str) -> Page:
    return Page(
        url=URL,
        status=200,
        headers={"Content-Type": "text/html"},
        body=html.encode(),
        task=Task(url=URL),
        fingerprint=b"12345678",
    )


def followed(query: Any = "a", **how: Any) -> list[str]:
    return [task.url.removeprefix(URL) for task in page_of(HTML).follow_all(query, **how)]


def test_allow_and_deny() -> None:
    assert followed(allow="/product/", deny=["/*?sort=", "*.zip"]) == ["product/1", "product/3"]
    assert followed(deny="/") == []
    assert followed(allow=["/about$", "/login"]) == ["about", "login"]
    assert followed([URL + "a", URL + "b"], allow="/b") == ["b"]


def test_regions() -> None:
    inside = ["product/1", "product/2?sort=price", "files/manual.PDF", "product/1.zip?x=1"]
    assert followed(within="main") == [*inside, "product/3"]
    assert followed(within="main main, nav") == ["about", "login", "product/3"]
    assert followed(within="footer") == []
    assert followed("main a", within=page_of(HTML).css("nav")) == []


def test_nofollow_and_files() -> None:
    assert "login" in followed()
    assert "login" not in followed(nofollow=True)
    pages = ["about", "login", "product/1", "product/2?sort=price", "product/3"]
    assert followed(files=False) == pages
    assert len(followed(files=True)) == len(pages) + 2


def test_files_to_upload_are_still_files() -> None:
    (task,) = page_of('<a href="/a.pdf">').follow_all("a", files={"f": ("a.txt", b"text")})

    assert task.method == "POST"


@pytest.mark.parametrize("how", [{"within": "main"}, {"nofollow": True}])
def test_an_address_does_not_know_where_it_was_found(how: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="follow 'a', not 'a::attr"):
        followed("a::attr(href)", **how)
    with pytest.raises(ValueError, match="need a CSS query"):
        followed([URL], **how)


def test_mistakes_are_told_though_there_is_no_link() -> None:
    with pytest.raises(ValueError, match="looks like a regular expression"):
        page_of("").follow_all("a", allow=r"/\d+")
    with pytest.raises(ValueError, match="not a CSS selector"):
        page_of("").follow_all("a", within="a[")


def test_links_that_are_not_wanted_do_not_count_as_too_many() -> None:
    page = page_of(HTML)
    page.max_links = 1

    assert len(page.follow_all("a", allow="/product/", deny="*.zip")) == 1
    assert page.links_cut == 2


def test_a_deep_page_is_walked_once() -> None:
    depth = 400
    page = page_of("<main>" + "<div><a href='/x'>x</a>" * depth)

    assert len(page.follow_all("a", within="div, main")) == depth
