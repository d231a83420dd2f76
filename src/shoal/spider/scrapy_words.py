"""Scrapy's words that people use out of habit, and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NOTHING: Any = object()
"""Stands for a missing first argument: people may have used one of Scrapy's words instead."""

WORDS = {
    "callback": "write handler=",
    "errback": "write on_failure=",
    "cb_kwargs": "write meta=, with JSON values",
    "formdata": "write form=",
    "css": "write the query itself, as the first argument",
    "xpath": "write page.xpath(...), as the first argument",
    "url": "write the address itself, as the first argument",
    "urls": "write the list itself, as the first argument",
    "cookies": 'write session=, or cookies = "visit" on the spider',
}
_FORM = "write CSS that selects the form, as the first argument"
OF_FORMS = WORDS | {
    "formdata": "write the values themselves, as the second argument",
    "formcss": _FORM,
    "formid": _FORM,
    "formname": _FORM,
    "formnumber": _FORM,
    "formxpath": _FORM,
    "clickdata": "write button=",
}
"""The words of `FormRequest.from_response`."""
ATTRIBUTES = {
    "body_as_unicode": "page.text",
    "cb_kwargs": "page.meta",
    "extract": ".getall()",
    "extract_first": ".get()",
    "re": "re.findall() on what .get() returns",
    "re_first": "re.search() on what .get() returns",
    "request": "page.task",
    "selector": "page.css()",
}
"""The attributes of responses and selections."""


def translated(function: str, word: str) -> str | None:
    """What to write instead of one of Scrapy's arguments. None for any other word."""
    return (OF_FORMS if function == "submit" else WORDS).get(word)


def unknown_word(function: str, words: Iterable[str]) -> TypeError:
    """The error for arguments that a function does not have, or for a missing first argument."""
    word = next(iter(words), None)
    if word is None:
        return TypeError(f"{function}() needs a first argument")
    if ours := translated(function, word):
        return TypeError(f"{word}= is Scrapy's word: {ours}")
    return TypeError(f"{function}() has no argument {word}=")


def unknown_attribute(thing: object, name: str) -> AttributeError:
    """The error for an attribute that a page or a selection does not have."""
    message = f"{type(thing).__name__!r} object has no attribute {name!r}"
    if ours := ATTRIBUTES.get(name):
        message = f"{message}, which is Scrapy's: write {ours}"
    return AttributeError(message, name=name, obj=thing)


def is_request_of_scrapy(thing: object) -> bool:
    """Whether it is a `scrapy.Request` or one of a derived class."""
    return any(cls.__module__.startswith("scrapy.http") for cls in type(thing).__mro__)
