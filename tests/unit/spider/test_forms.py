"""Forms: the same requests as from a browser, clear errors, and no page that takes for ever."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from shoal.core.task import Task, raw_body
from shoal.errors import BadUrl, Unparsable
from shoal.spider.harvest import harvest
from shoal.spider.page import Page
from shoal.spider.spider import Spider

URL = "https://shop.example/a/b?c=1#top"
PNG = b"\x89PNG\r\n\x1a\n"


def page_of(html: str | bytes, content_type: str = "text/html; charset=utf-8") -> Page:
    return Page(
        url=URL,
        status=200,
        headers=CIMultiDict({"content-type": content_type}),
        body=html.encode() if isinstance(html, str) else html,
        task=Task(url=URL),
        fingerprint=bytes(8),
    )


def fields_of(task: Task) -> list[tuple[str, str]]:
    query = urlsplit(task.url).query if task.method == "GET" else task.body or ""
    return parse_qsl(query, keep_blank_values=True)


def sent(inside: str, values: dict[str, Any] | None = None, **options: Any) -> str:
    """What a form with this inside sends, in short."""
    task = page_of(f"<form>{inside}</form>").submit("form", values, **options)
    return "&".join(f"{name}={value}" for name, value in fields_of(task))


UNTOUCHED = [
    # Text
    ("<input name=a>", "a="),
    ("<input name=a value=1><input name=b value=2>", "a=1&b=2"),
    ("<input value=1><input name='' value=2>", ""),
    ("<input type=hidden name=a value=' 1 '>", "a= 1 "),
    ("<input type=TEXT name=a value=1><input type=odd name=b value=2>", "a=1&b=2"),
    ("<input type=email name=a value=' x@y\n'>", "a=x@y"),
    ("<input name=a value=' x\ny'>", "a= xy"),
    ("<input type=number name=a value=x><input type=number name=b value=-1.5e3>", "a=&b=-1.5e3"),
    ("<input type=color name=a><input type=color name=b value=#AABBCC>", "a=#000000&b=#aabbcc"),
    ("<input type=range name=a><input type=range name=b min=10 max=20>", "a=50&b=15"),
    ("<input type=range name=a min=9 max=1><input type=range name=b value=3>", "a=9&b=3"),
    ("<textarea name=a>\nx\ny</textarea>", "a=x\r\ny"),
    ("<textarea name=a><b>&amp;</textarea>", "a=<b>&"),
    ("<input name=q dirname=d value=1>", "q=1&d=ltr"),
    ("<p dir=rtl><textarea name=q dirname=d></textarea></p>", "q=&d=rtl"),
    ("<input type=checkbox name=q dirname=d checked>", "q=on"),
    # Boxes
    ("<input type=checkbox name=a><input type=checkbox name=b checked>", "b=on"),
    ("<input type=checkbox name=a value='' checked>", "a="),
    ("<input type=radio name=a value=1 checked><input type=radio name=a value=2 checked>", "a=2"),
    ("<input type=radio name=a value=1><input type=radio name=a value=2>", ""),
    # Selects
    ("<select name=a><option>1<option>2</select>", "a=1"),
    ("<select name=a><option value=''>none<option>2</select>", "a="),
    ("<select name=a><option disabled>1<option>2</select>", "a=2"),
    ("<select name=a><optgroup disabled><option>1</optgroup><option>2</select>", "a=2"),
    ("<select name=a><option selected disabled>1<option>2</select>", ""),
    ("<select name=a><option selected>1<option selected>2<option>3</select>", "a=2"),
    ("<select name=a size=2><option>1<option>2</select>", ""),
    ("<select name=a multiple><option>1<option selected>2<option selected>3</select>", "a=2&a=3"),
    ("<select name=a multiple><option>1</select><select name=b></select>", ""),
    ("<select name=a><option>  x \n <b>y</b>  </select>", "a=x y"),
    # Files, without one
    ("<input type=file name=a>", "a="),
    # Disabled
    ("<input name=a disabled><select name=b disabled><option>1</select>", ""),
    ("<fieldset disabled><input name=a><p><textarea name=b></textarea></p></fieldset>", ""),
    ("<fieldset disabled><legend><input name=a></legend><legend><input name=b></legend>", "a="),
    ("<fieldset disabled><p>x<legend><b><input name=a></b></legend></fieldset>", ""),
    (
        "<fieldset disabled><fieldset disabled><legend><input name=a></legend></fieldset>",
        "",
    ),
    ("<fieldset><input name=a></fieldset>", "a="),
    ("<input name=a readonly value=1>", "a=1"),
    ("<datalist><input name=a><option>x</datalist>", ""),
    # Buttons
    ("<button>x</button>", ""),
    ("<button name=a value=1>x</button>", "a=1"),
    ("<button name=a type=reset></button><button name=b type=button></button>", ""),
    ("<input type=reset name=a><input type=button name=b><input name=c>", "c="),
    ("<input type=submit name=a value=1><input type=submit name=b value=2>", "a=1"),
    ("<input type=submit name=a disabled><input type=submit name=b value=2>", "b=2"),
    ("<input type=submit name=a>", "a="),
    ("<input type=image name=a>", "a.x=0&a.y=0"),
    ("<input type=image>", "x=0&y=0"),
    ("<input name=z><button name=a value=1></button><input name=y>", "z=&a=1&y="),
    # Not of this form
    ("<input name=a form=other><input name=b form=''>", ""),
    ("<object name=a></object><output name=b>1</output>", ""),
    # The charset
    (
        "<input type=hidden name=_charset_ value=x><input name=_CHARSET_>",
        "_charset_=UTF-8&_CHARSET_=",
    ),
]


@pytest.mark.parametrize(("inside", "expected"), UNTOUCHED)
def test_a_form_that_nobody_touched(inside: str, expected: str) -> None:
    assert sent(inside) == expected


BOXES = "<input type=checkbox name=a value=1 checked><input type=checkbox name=a value=2>"
RAILS = "<input type=hidden name=a value=0><input type=checkbox name=a value=1>"
RADIOS = "<input type=radio name=a value=1 checked><input type=radio name=a value=2>"
SELECT = "<select name=a><option value=1>One<option value=2>Two</select>"
SEVERAL = "<select name=a multiple><option selected>1<option>2<option>3</select>"
TWICE = "<input name=a value=1><input name=a value=2>"
BUTTONS = "<input name=q><button name=a value=1></button><button name=a value=2></button>"


@pytest.mark.parametrize(
    ("inside", "values", "expected"),
    [
        ("<input name=a value=1>", {"a": "x y"}, "a=x y"),
        ("<input name=a value=1>", {"a": 7}, "a=7"),
        ("<input name=a value=1>", {"a": ""}, "a="),
        ("<input name=a value=1><input name=b>", {"a": None}, "b="),
        ("<input type=hidden name=a value=1>", {"a": "2"}, "a=2"),
        ("<textarea name=a>x</textarea>", {"a": "1\n2"}, "a=1\r\n2"),
        ("<input type=number name=a>", {"a": "1,5"}, "a=1,5"),
        ("<input name=a disabled>", {"a": "x"}, "a=x"),
        ("<input name=a disabled><input name=a>", {"a": "x"}, "a=x"),
        (TWICE, {"a": "x"}, "a=x&a=2"),
        (TWICE, {"a": ["x", "y"]}, "a=x&a=y"),
        (TWICE, {"a": None}, ""),
        (BOXES, {"a": "2"}, "a=2"),
        (BOXES, {"a": ["2", "1"]}, "a=1&a=2"),
        (BOXES, {"a": {1, 2}}, "a=1&a=2"),
        (BOXES, {"a": []}, ""),
        (BOXES, {"a": False}, ""),
        (BOXES, {"a": None}, ""),
        (RAILS, {"a": True}, "a=0&a=1"),
        (RAILS, {"a": False}, "a=0"),
        (RAILS, {"a": None}, ""),
        (RADIOS, {"a": "2"}, "a=2"),
        (RADIOS, {"a": 1}, "a=1"),
        (RADIOS, {"a": None}, ""),
        (SELECT, {"a": 2}, "a=2"),
        (SELECT, {"a": None}, ""),
        (SEVERAL, {"a": ["3", "2"]}, "a=2&a=3"),
        (SEVERAL, {"a": ()}, ""),
        ("<input type=radio name=a value=1><input name=a>", {"a": ["1", "x"]}, "a=1&a=x"),
        (BUTTONS, {"q": "x"}, "q=x&a=1"),
        (BUTTONS, {"a": None}, "q="),
    ],
)
def test_what_is_filled_in(inside: str, values: dict[str, Any], expected: str) -> None:
    assert sent(inside, values) == expected


@pytest.mark.parametrize(
    ("inside", "values", "says"),
    [
        ("<input name=a><input name=b>", {"c": "1"}, "no field 'c'; the form has 'a', 'b'"),
        ("<input name=a\n>", {"c\n": "1"}, r"no field 'c\\n'; the form has 'a'"),
        ("", {"a": "1"}, "no field 'a'; the form has none"),
        ("<button name=a type=reset></button>", {"a": 1}, "no field 'a'"),
        ("<input name=a>", {"a": ["1", "2"]}, "too many values for field 'a'"),
        ("<input name=a>", {"a": True}, "field 'a' is not a check box: it takes text, not True"),
        ("<input name=a>", {"a": {}}, "a field is text or a number, not dict: 'a'"),
        ("<input name=a>", {"a": b"x"}, "a field is text or a number, not bytes: 'a'"),
        ("<input name=a>", {"a": ("x", b"x")}, "field 'a' takes no file"),
        ("<input type=file name=a>", {"a": "x"}, "field 'a' takes files: a name and its bytes"),
        (BOXES, {"a": "3"}, "field 'a' has no choice '3'; it has '1', '2'"),
        (BOXES, {"a": True}, "there are 2 check boxes 'a': give their values"),
        (RADIOS, {"a": "3"}, "field 'a' has no choice '3'; it has '1', '2'"),
        (RADIOS, {"a": ["1", "2"]}, "only one of the radio buttons 'a' can be chosen"),
        (SELECT, {"a": "Two"}, "field 'a' has no choice 'Two'; it has '1', '2'"),
        (SELECT, {"a": ["1", "2"]}, "field 'a' has no choice '2'"),
        (BUTTONS, {"a": "2"}, "'a' is a button, not a field: name it with button="),
    ],
)
def test_what_cannot_be_filled_in(inside: str, values: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=f"^form on {URL.replace('?', '.')}: {says}") as caught:
        sent(inside, values)
    assert "\n" not in str(caught.value)


# Buttons


def test_the_button_that_is_pressed() -> None:
    assert sent(BUTTONS, button="[value='2']") == "q=&a=2"
    two = "<input type=image name=i><input type=submit name=s value=1>"
    assert sent(two, button="[name=s]") == "s=1"
    assert sent(two) == "i.x=0&i.y=0"


def test_a_button_may_be_disabled_until_a_script_enables_it() -> None:
    assert sent("<button name=a value=1 disabled>", button="button") == "a=1"


def test_a_button_elsewhere_on_the_page() -> None:
    page = page_of("<button name=x value=1></button><form id=f></form><button name=y form=f>")
    assert fields_of(page.submit("form", button="button")) == [("y", "")]
    assert fields_of(page.submit(page.css("form"), button=page.css("[form]"))) == [("y", "")]


@pytest.mark.parametrize("button", ["#none", "input", "[type=reset]"])
def test_a_button_that_is_none(button: str) -> None:
    with pytest.raises(ValueError, match="no such button; the form has 'a'"):
        sent(f"{BUTTONS}<button type=reset>", button=button)


def test_a_button_may_change_everything() -> None:
    page = page_of(
        "<form action=/a method=get><input name=q>"
        "<button formaction=/b formmethod=POST formenctype=text/plain></button>"
        "<button id=odd formmethod=odd formaction=''></button></form>"
    )
    task = page.submit("form", {"q": "1"})
    assert (task.url, task.method, task.body) == ("https://shop.example/b", "POST", "q=1\r\n")
    task = page.submit("form", {"q": "1"}, button="#odd")
    assert (task.url, task.method) == ("https://shop.example/a/b?q=1", "GET")


# Where it goes, and how


@pytest.mark.parametrize(
    ("form", "url"),
    [
        ("<form method=post>", "https://shop.example/a/b?c=1"),
        ("<form method=post action>", "https://shop.example/a/b?c=1"),
        ("<form method=post action='  go#x '>", "https://shop.example/a/go"),
        ("<form method=post action='?d=2'>", "https://shop.example/a/b?d=2"),
        ("<form method=post action=//other.example/>", "https://other.example/"),
        ("<form>", "https://shop.example/a/b?q=1"),
        ("<form method=odd action='/go?d=2#x'>", "https://shop.example/go?q=1"),
        ("<base href=/base/><form method=post action=go>", "https://shop.example/base/go"),
        ("<base href=/base/><form method=post>", "https://shop.example/a/b?c=1"),
    ],
)
def test_where_it_goes(form: str, url: str) -> None:
    assert page_of(f"{form}<input name=q value=1>").submit("form").url == url


@pytest.mark.parametrize("action", ["mailto:a@b.example", "javascript:void(0)", "http://["])
def test_a_form_that_leads_to_no_page(action: str) -> None:
    with pytest.raises(BadUrl):
        page_of(f"<form action='{action}'>").submit("form")


def test_a_dialog_is_not_sent() -> None:
    with pytest.raises(ValueError, match="the form is for a dialog of its page"):
        page_of("<form method=Dialog>").submit("form")


@pytest.mark.parametrize(
    ("query", "says"),
    [("#login", "no such form"), ("p", "<p> is not a form"), ("form::attr(id)", "no such form")],
)
def test_a_form_that_is_none(query: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        page_of("<p><form id=a>").submit(query)


def test_pages_without_a_tree_have_no_form() -> None:
    with pytest.raises(ValueError, match="no such form"):
        page_of(b"").submit("form")


@pytest.mark.parametrize(
    ("enctype", "kind", "body"),
    [
        ("", "application/x-www-form-urlencoded", "a=x+y"),
        ("odd/type", "application/x-www-form-urlencoded", "a=x+y"),
        ("TEXT/plain", "text/plain", "a=x y\r\n"),
        ("multipart/form-data", "multipart/form-data; boundary=", 'name="a"\r\n\r\nx y\r\n'),
    ],
)
def test_how_it_is_written(enctype: str, kind: str, body: str) -> None:
    page = page_of(f"<form method=post enctype='{enctype}'><input name=a>")
    task = page.submit("form", {"a": "x y"}, headers={"X": "1"})
    assert task.headers["Content-Type"].startswith(kind)
    assert (task.method, task.headers["X"]) == ("POST", "1")
    assert body in (task.body or "")


FILES = "<form method=post enctype=multipart/form-data><input type=file name=f{}>"


def test_files() -> None:
    task = page_of(FILES.format("")).submit("form", {"f": ("a.png", PNG)})
    head = b'name="f"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    assert task.body_is_base64
    assert head + PNG in raw_body(task)
    none = page_of(FILES.format("")).submit("form")
    assert 'filename=""\r\nContent-Type: application/octet-stream\r\n\r\n\r\n' in (none.body or "")


def test_several_files() -> None:
    two = [("a.txt", b"1"), ("b.bin", b"2", "x/y")]
    body = page_of(FILES.format(" multiple")).submit("form", {"f": two}).body or ""
    assert body.index('"a.txt"\r\nContent-Type: text/plain') < body.index(
        '"b.bin"\r\nContent-Type: x/y'
    )
    with pytest.raises(ValueError, match="takes no files, or no more files"):
        page_of(FILES.format("")).submit("form", {"f": two})


def test_a_file_in_a_form_that_is_not_for_files_is_its_name() -> None:
    assert sent("<input type=file name=f>", {"f": ("a.png", PNG)}) == "f=a.png"


@pytest.mark.parametrize(
    ("content_type", "form", "expected"),
    [
        ("text/html", "<form method=post>", "q=%C3%BC"),
        ("text/html; charset=iso-8859-1", "<form method=post>", "q=%FC"),
        ("text/html", "<meta charset=windows-1251><form method=post>", "q=%26%23252%3B"),
        ("text/html", "<meta charset=no-such><form method=post>", "q=%C3%BC"),
        ("text/html", "<form method=post accept-charset='x-odd latin1 utf-8'>", "q=%FC"),
        ("text/html; charset=latin1", "<form method=post accept-charset=base64>", "q=%C3%BC"),
        ("text/html; charset=utf-16le", "<form method=post>", "q=%C3%BC"),
    ],
)
def test_the_charset(content_type: str, form: str, expected: str) -> None:
    encoding = "utf-16le" if "utf-16" in content_type else "ascii"
    page = page_of(f"{form}<input name=q>".encode(encoding), content_type)
    assert page.submit("form", {"q": "ü"}).body == expected


def test_the_charset_is_named() -> None:
    inside = "<form><input type=hidden name=_charset_>"
    task = page_of(inside, "text/html; charset=latin1").submit("form")
    assert fields_of(task) == [("_charset_", "windows-1252")]


# Whose a control is


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<input name=a form=f><form id=f><input name=b></form><input name=c>", "ab"),
        ("<form id=f><input name=a form=g></form><form id=g><input name=b></form>", ""),
        ("<p id=f></p><form id=f><input name=b></form><input name=a form=f>", "b"),
        ("<form id=f><form><input name=a></form><input name=b></form>", "a"),
        ("<table><form id=f><tr><td><input name=a><tr><td><input name=b></form></table>", "ab"),
        (
            "<table><tr><form id=f><td><input name=a></form></tr>"
            "<tr><form><td><input name=b></form></tr></table><input name=c>",
            "a",
        ),
        ("<form id=f></form><table><form><tr><td><input name=a></form></table>", ""),
        ("<form id=f><template><input name=a></template><input name=b></form>", "b"),
        ("<form id=f><div><p><b><input name=a></form><input name=b>", "ab"),
    ],
)
def test_whose_a_control_is(html: str, expected: str) -> None:
    assert "".join(name for name, _ in fields_of(page_of(html).submit("form"))) == expected


# The task


def test_what_the_task_is_told() -> None:
    class Shop(Spider):
        def done(self, page: Page) -> None: ...

    task = page_of("<form method=post>").submit(
        "form",
        handler=Shop().done,
        priority=3,
        meta={"a": 1},
        dont_filter=True,
        chain="c",
        proxy_pool="eu",
    )
    assert (task.job_type, task.priority, task.meta, task.dont_filter) == (
        "done",
        3,
        {"a": 1},
        True,
    )
    assert (task.chain, task.proxy_pool, task.depth, task.body) == ("c", "eu", 1, "")


def test_what_follow_sends() -> None:
    page = page_of("")
    task = page.follow("/api", json={"q": 1})
    assert (task.method, task.body, task.headers) == (
        "POST",
        '{"q":1}',
        {"Content-Type": "application/json"},
    )
    assert page.follow("/x", form={"a": "1"}, method="put").method == "PUT"
    assert [task.body for task in page.follow_all(["/1", "/2"], form={"a": 1})] == ["a=1"] * 2
    assert all(task.body_is_base64 for task in page.follow_all(["/1"], files={"f": ("a", PNG)}))
    assert raw_body(page.follow("/x", body=PNG, method="PUT")) == PNG
    assert (page.follow("/x").method, page.follow("/x").headers) == ("GET", {})


async def test_a_missing_field_is_the_handlers_error() -> None:
    class Shop(Spider):
        def parse(self, page: Page) -> Any:
            yield page.submit("form", {"nope": 1})

    with pytest.raises(ValueError, match="no field 'nope'"):
        await harvest(Shop(), page_of("<form>"))


# Hostile pages


@pytest.mark.parametrize(
    ("html", "error"),
    [
        ("<form>" + "<input name=a>" * 100_000, Unparsable),
        ("<form>" + f"<select name=a>{'<option>1' * 1_000}</select>" * 60, Unparsable),
        ("<form>" + "<input name=abcdefghij>" * 9_000, ValueError),
        ("<form method=post><textarea name=a>" + "x" * 2_000_000, ValueError),
        ("<form><fieldset disabled>" + "<p>" * 9_000 + "<input name=a>" * 1_000, None),
        ("<form>" + "<fieldset disabled>" * 3_000 + "<input name=a>" * 1_000, None),
        ("<table><form>" * 2_000 + "<input name=a>" * 1_000, None),
        ("<form>" + "<p dir=x>" * 3_000 + "<input name=a dirname=b disabled>" * 1_000, None),
    ],
)
def test_forms_without_end(html: str, error: type[Exception] | None) -> None:
    page = page_of(html)
    page._is_tried = True  # Whether it can be parsed is shown elsewhere.
    page.css("form").get()
    began = time.process_time()
    if error is None:
        page.submit("form")
    else:
        with pytest.raises(error) as caught:
            page.submit("form")
        assert len(str(caught.value)) < 300
    assert time.process_time() - began < 20


SOUP = re.findall(
    r"\S+",
    """<form> </form> <input <select> <option> <textarea> </textarea> <fieldset <legend> disabled
    name=a type=radio value=1 > <table> <tr> <button> form=f id=f multiple </select> <optgroup
    <datalist> enctype=text/plain method=post""",
)


@given(st.lists(st.sampled_from(SOUP)))
def test_no_soup_crashes_it(parts: list[str]) -> None:
    page = page_of("<form id=f action=/x>" + " ".join(parts))
    assert page.submit("form").url.startswith("https://shop.example/x")
    with suppress(ValueError):
        page.submit("form", {"a": "1"})
