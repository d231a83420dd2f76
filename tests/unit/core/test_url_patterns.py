from __future__ import annotations

import re
import time
from typing import Any

import pytest

from shoal.core.url_patterns import read_patterns
from shoal.core.urls import MAX_URL_LENGTH

SHOP = "https://shop.example"


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/product/", "/product/7", True),
        ("/product/", "/a/product/7", False),
        ("*/product/", "/a/product/7", True),
        ("/*?sort=", "/list?sort=price", True),
        ("/*?sort=", "/list?page=1", False),
        ("*.pdf$", "/a.pdf", True),
        ("*.pdf$", "/a.pdf?v=2", False),
        ("/a$", "/a", True),
        ("/a$", "/ab", False),
        ("/a*a$", "/a", False),
        ("/a*a$", "/aa", True),
        ("*ab*ab$", "/ab", False),
        ("*$", "/", True),
        ("/", "/anything", True),
        ("/größe", "/gr%C3%B6%C3%9Fe", True),
        ("https://SHOP.example/a", "/a/b", True),
        ("https://shop.example", "/a/b", True),
        ("http://shop.example/", "/a/b", False),
        ("https://*.example/a", "/a", True),
        ("https://other.example/", "/a", False),
    ],
)
def test_patterns_are_read_as_in_robots_txt(pattern: str, path: str, fits: bool) -> None:
    (read,) = read_patterns("allow", pattern)

    assert read.matches(SHOP + path) is fits


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (r"/product/\d+", "looks like a regular expression"),
        ("^/product", "looks like a regular expression"),
        ("/product/.*", "looks like a regular expression"),
        ("/a|/b", "looks like a regular expression"),
        (re.compile("a"), "no regular expression; write it as in robots.txt: '/product/'"),
        ([re.compile("a")], "no regular expression"),
        ("product", "write '/product' or '*product'"),
        ("", "begins with neither"),
        ("/a#b", "after # is not part"),
        ("https://", "is no host"),
        ("/" * 1_001, "longer than 1,000 characters"),
        (7, "a text, or a list of texts"),
        ([None], "a text, or a list of texts"),
        (b"/a", "a text, or a list of texts"),
    ],
)
def test_what_is_no_pattern_is_told_with_what_to_write(given: Any, told: str) -> None:
    with pytest.raises(ValueError, match=r"^deny=") as raised:
        read_patterns("deny", given)

    assert told in str(raised.value)


def test_no_address_takes_long() -> None:
    (pattern,) = read_patterns("allow", "/" + "*a" * 400 + "*b$")
    url = f"{SHOP}/" + "a" * MAX_URL_LENGTH
    began = time.process_time()

    assert not pattern.matches(url)
    assert time.process_time() - began < 1
