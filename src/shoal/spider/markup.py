"""Parsing HTML: from a body's bytes to its text and its tree, however broken the body is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError
from w3lib.encoding import (
    html_body_declared_encoding,
    http_content_type_encoding,
    read_bom,
    to_unicode,
)

from shoal.errors import Unparsable
from shoal.spider import trial

FEW_TAGS, MANY_TAGS = 1_500, 5_000
"""Lexbor's time grows with the square of a page's tags, or with their cube: see `_REOPENED`. With
few it takes a fifth of a second at worst, whatever they are. With many it may take a second."""

MANY_REOPENED = 50

SMALL_BYTES = 48 * 1024
"""A page of this size has no tag with so many attributes that they take a second."""

_NUL = "\0"
"""Joins texts that are to be told apart: an HTML parser never lets one into a tree."""

_REOPENED = re.compile(
    rb"<(?=[bcefhinstu])"  # Most tags are none of these: this finds out quickly.
    rb"(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u|body|html)[\s/]"
)
"""Tags with attributes that a parser opens again in every paragraph in which they are not closed,
all that differ; and those that collect the attributes of all their like."""

_ATTRIBUTE = rb"""[ \t\n\f\r/]*+[^ \t\n\f\r/>%(not)b][^ \t\n\f\r/>=%(not)b]*+(?:
    [ \t\n\f\r]*+=[ \t\n\f\r]*+(?:
        "[^"%(not)b]*+" | '[^'%(not)b]*+' | (?!["'])[^ \t\n\f\r>%(not)b]*+(?![^ \t\n\f\r>])
    ) | (?![ \t\n\f\r]*+=)
)"""
_TAG = rb"[^ \t\n\f\r/>%%(not)b]*+(?:%b){0,50}+[ \t\n\f\r/]*+" % _ATTRIBUTE
"""With a sane number of attributes: each is compared with all those before it. This is HTML's own
grammar: what a parser takes for a value is one here, and ends no tag."""
_USUAL_TAG = rb"""[a-z0-9]{0,20}+(?:[ ][a-z]{1,30}+="[^"]{0,200}+"){0,10}+>"""
"""Most are like this, which is recognised in half the time."""
_PLAIN_TAG = (_TAG % {b"not": b"<"}) + rb"(?:>|\Z)"
_UNCLEAR_TAG = re.compile(rb"<[a-zA-Z](?!%b)(?!%b)" % (_USUAL_TAG, _PLAIN_TAG), re.VERBOSE)
"""Where a tag may begin that has no end before the next one may. No byte is looked at for two of
them, so this takes linear time."""
_SANE_TAG = re.compile(rb"<[a-zA-Z]" + (_TAG % {b"not": b""}) + rb">", re.VERBOSE)

MANY_UNCLEAR, SANE_TAG_BYTES = 1_000, 4 * 1024
"""How many of these are looked at once more, and how much of each. A `<` is in some values, and in
many a script."""

_NOT_FOR_PAGES = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
)
"""Codecs of Python that no page is written in; some take quadratic time."""


def text(body: bytes, content_type: str) -> str:
    """The body as text. What cannot be decoded becomes U+FFFD."""
    return to_unicode(*_encoded(body, content_type))


def as_utf8(body: bytes, content_type: str) -> bytes:
    """The body as Lexbor reads it. It reads UTF-8 by itself, which saves a copy."""
    raw, encoding = _encoded(body, content_type)
    return raw if encoding == "utf-8" else to_unicode(raw, encoding).encode()


def tree(body: bytes, content_type: str, *, is_tried: bool = False) -> tuple[LexborNode, ...]:
    """The root element; nothing for a body without markup: empty or binary. Raises Unparsable.
    Unless it was tried before, it is now if it has to be."""
    source = as_utf8(body, content_type)
    if not source or source.isspace() or _is_binary(source, content_type):
        return ()
    if not is_tried:
        refuse_endless(source)
    try:
        root = LexborHTMLParser(source).root
    except SelectolaxError:  # no memory left: a small page can ask for gigabytes of elements
        raise Unparsable("the page takes too much memory to parse") from None
    return () if root is None else (root,)


def visible_text(scope: Sequence[LexborNode]) -> str:
    """The text of a tree without that of scripts and style sheets. The tree stays as it is."""
    return " ".join(_visible_text(root) for root in scope)


def _visible_text(root: LexborNode) -> str:
    rest = f"{_NUL}{root.text(separator=_NUL)}{_NUL}"
    parts = []
    begin = 0
    for hidden in root.css("script, style"):
        if not (code := hidden.text(separator=_NUL)):
            continue
        # It is the next text that reads like this; whether it is the very one does not matter.
        end = rest.find(f"{_NUL}{code}{_NUL}", begin)
        if end < 0:  # One inside another one. To go on searching would take quadratic time.
            break
        parts.append(rest[begin:end])
        begin = end + len(code) + 1
    return " ".join([*parts, rest[begin:]]).replace(_NUL, " ")


def _is_binary(source: bytes, content_type: str) -> bool:
    return b"\0" in source[:1024] and "html" not in content_type.lower()


def _encoded(body: bytes, content_type: str) -> tuple[bytes, str]:
    """The body without its byte order mark, and its encoding as far as one can tell."""
    encoding, mark = read_bom(body)
    if encoding is not None and mark is not None:
        return body[len(mark) :], encoding
    encoding = _encoding_named(content_type) or _declared(body)
    if encoding is not None and _can_decode(encoding):
        return body, encoding
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return body, "cp1252"
    return body, "utf-8"


def charset(body: bytes, content_type: str) -> str:
    """The encoding that a page says it is in, in which its forms are sent; if it says none, the one
    it is read in."""
    encoding, _ = read_bom(body)
    named = encoding or _encoding_named(content_type) or html_body_declared_encoding(body)
    return named if named and _can_decode(named) else _encoded(body, content_type)[1]


_encoding_named = lru_cache(maxsize=256)(http_content_type_encoding)


def _declared(body: bytes) -> str | None:
    # Plain ASCII reads the same in all that a page may declare but ISO-2022-JP, which has escapes.
    if body.isascii() and b"\x1b" not in body:
        return "utf-8"
    return html_body_declared_encoding(body)


def _can_decode(encoding: str) -> bool:
    if encoding in _NOT_FOR_PAGES:
        return False
    try:
        b"x".decode(encoding, "replace")
    except (LookupError, ValueError):  # base64 and the like: codecs, but not of text
        return False
    return True


def refuse_endless(html: bytes) -> None:
    """Raise Unparsable for a page that takes too much time or memory to parse. Where a few quick
    looks do not show that it is harmless, it is tried elsewhere."""
    if is_odd(html):
        trial.check(html)


def is_odd(html: bytes) -> bool:
    """Whether a page has to be tried before it is parsed."""
    tags = html.count(b"<")
    if tags > MANY_TAGS:
        return True
    if tags > FEW_TAGS and len(_REOPENED.findall(html.lower())) > MANY_REOPENED:
        return True
    return len(html) > SMALL_BYTES and _may_have_endless_tag(html)


def _may_have_endless_tag(html: bytes) -> bool:
    for number, unclear in enumerate(_UNCLEAR_TAG.finditer(html), 1):
        begin = unclear.start()
        is_sane = _SANE_TAG.match(html, begin, begin + SANE_TAG_BYTES)
        if is_sane is None or number > MANY_UNCLEAR:
            return True
    return False
