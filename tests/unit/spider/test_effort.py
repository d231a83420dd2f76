"""Selectors on pages that are made to take long."""

from __future__ import annotations

import pytest
from multidict import CIMultiDict

from shoal.core.task import Task
from shoal.errors import Unparsable
from shoal.spider import effort, selection, trial
from shoal.spider.effort import demands_of
from shoal.spider.page import Page

SHOP = (
    b"<html><body><main>"
    + b"<ul class=grid>"
    + b'<li class=card><a href="/p/1"><span>name</span> <b>9.99</b></a><ul><li>x</li></ul></li>'
    * 150
    + b"</ul></main></body></html>"
)
TABLE = b"<table>" + b"<tr><td>1</td><td>2</td><td>3</td></tr>" * 400 + b"</table>"


def page_of(body: bytes) -> Page:
    task = Task(url="https://shop.example/")
    headers = CIMultiDict({"Content-Type": "text/html"})
    return Page(url=task.url, status=200, headers=headers, body=body, task=task, fingerprint=b"")


@pytest.mark.parametrize(
    ("selector", "demands"),
    [
        ("a", []),
        ("div a", []),
        ("div  ul\n li > a", [(2, False)]),
        ("div > ul > li", []),
        ("ul li a, ol li a b, i", [(2, False), (3, False)]),
        ("a[title='b c d']", []),
        ('a[title="b c d"] b c', [(2, False)]),
        ("a[rel~=x]", []),
        (r"a\ b c", []),
        ("a ~ b, c d", [(0, True)]),
        ("tr:nth-child(2) td", [(1, True)]),
        ("div:is(a b, c d e) f", [(4, True)]),
        ("p:has(~ b)", [(0, True)]),
    ],
)
def test_what_a_selector_asks_for(selector: str, demands: list[tuple[int, bool]]) -> None:
    assert demands_of(selector) == tuple(demands)


NESTED = b"<div>" * 2_400
HARD = [
    (NESTED * 2 + b"<span>x", "b div div span"),
    (NESTED + b"<span>x</span>" * 1_200, "b div span"),
    (b"<div></x>" * 2_400 + b"<span>", "b div div span"),
    (b"<div>" * 250 + b"<span>x</span>" * 2_000, "b div div span"),
    (b"<p>" * 100_000, "p:nth-child(2)"),
    (b"<p>" * 100_000, "b ~ p"),
    (b"<p>" * 100_000, "p:has(~ b)"),
    (b"<table>" + b"<tr><td>x</td></tr>" * 100_000, "tr:nth-child(2) td"),
]


@pytest.mark.parametrize(("body", "selector"), HARD, ids=range(len(HARD)))
def test_a_selector_that_would_take_minutes_is_refused(
    body: bytes, selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(effort, "SECONDS", 0.2)
    page = page_of(body)
    with pytest.raises(Unparsable, match="takes too long on this page"):
        page.css(selector).get()
    # Once is enough.
    monkeypatch.delattr(trial, "check")
    for again in (page.css(selector), page.css("html")[0].css(selector)):
        with pytest.raises(Unparsable, match="takes too long on this page"):
            again.getall()


@pytest.mark.parametrize(("body", "selector"), HARD, ids=range(len(HARD)))
def test_others_are_run_on_such_a_page(body: bytes, selector: str) -> None:
    assert page_of(body).css("html body").get()


@pytest.mark.parametrize("body", [SHOP, TABLE])
@pytest.mark.parametrize(
    "selector",
    [
        "main ul li a span::text",
        "html body main ul.grid li.card a b",
        "li:first-child a::attr(href)",
        "td:nth-child(2)::text",
        "tr:nth-child(odd) td",
        "ul li ~ li, ul li + li a",
        "li:has(a) span",
    ],
)
def test_usual_pages_are_not_tried(
    body: bytes, selector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = page_of(body)
    page.css("html").get()  # The table is large enough to be tried before it is parsed.
    monkeypatch.delattr(trial, "check")
    page.css(selector).getall()


def test_a_selector_that_takes_long_enough_to_be_tried_may_be_fine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(effort, "SECONDS", 60.0)
    rows = b"<tr><td>1</td></tr>" * 12_000
    assert len(page_of(b"<table>" + rows + b"</table>").css("tr:nth-child(2) td")) == 1


def test_the_same_text_again_and_again_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MAX_TEXT", 1_000_000)
    page = page_of(b"<div>" * 100 + b"x" * 20_000)
    with pytest.raises(Unparsable, match="longer than 1,000,000 characters"):
        page.css("div").getall()
    assert len(page.css("div")[:40].getall()) == 40


def test_what_was_found_out_about_a_page_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of(b"<svg></x>" * 100_000)
    for _ in range(2):
        with pytest.raises(Unparsable, match="takes too long to parse"):
            page.css("a")
        monkeypatch.delattr(trial, "check", raising=False)
