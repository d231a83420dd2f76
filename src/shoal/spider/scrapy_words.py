"""Words that people bring along from Scrapy, and what they are here."""

from __future__ import annotations

from collections.abc import Iterable

WORDS = {
    "callback": "write handler=",
    "errback": "write on_failure=",
    "cb_kwargs": "write meta=, with JSON values",
    "formdata": "write form=",
    "css": "write the query itself, as the first argument",
    "xpath": "write a CSS query, as the first argument",
    "cookies": 'write session=, or cookies = "visit" on the spider',
}


def unknown_word(function: str, words: Iterable[str]) -> TypeError:
    """What to raise for arguments that a function does not have."""
    word = next(iter(words))
    if word in WORDS:
        return TypeError(f"{word}= is Scrapy's word: {WORDS[word]}")
    return TypeError(f"{function}() has no argument {word}=")
