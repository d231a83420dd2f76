"""Words that people bring along from Scrapy, and what they are here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

NOTHING: Any = object()
"""Stands for a first argument that was left out: people write Scrapy's words in its place."""

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
_FORM = "write CSS that finds the form, as the first argument"
OF_FORMS = WORDS | {
    "formdata": "write the values themselves, as the second argument",
    "formcss": _FORM,
    "formid": _FORM,
    "formname": _FORM,
    "formnumber": _FORM,
    "formxpath": _FORM,
    "clickdata": "write button=",
}
"""Those of `FormRequest.from_response`."""
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
"""Those of responses and selections."""


def translated(function: str, word: str) -> str | None:
    """What to write for an argument that the function has in Scrapy. None for any other."""
    return (OF_FORMS if function == "submit" else WORDS).get(word)


def unknown_word(function: str, words: Iterable[str]) -> TypeError:
    """What to raise for arguments that a function does not have, or for a first one that is not
    there."""
    word = next(iter(words), None)
    if word is None:
        return TypeError(f"{function}() needs a first argument")
    if ours := translated(function, word):
        return TypeError(f"{word}= is Scrapy's word: {ours}")
    return TypeError(f"{function}() has no argument {word}=")


def unknown_attribute(thing: object, name: str) -> AttributeError:
    """What to raise for an attribute that a page or a selection does not have."""
    said = f"{type(thing).__name__!r} object has no attribute {name!r}"
    if ours := ATTRIBUTES.get(name):
        said = f"{said}, which is Scrapy's: write {ours}"
    return AttributeError(said, name=name, obj=thing)


def is_request_of_scrapy(thing: object) -> bool:
    """Whether it is a `scrapy.Request`, or of a class derived from it."""
    return any(cls.__module__.startswith("scrapy.http") for cls in type(thing).__mro__)
