"""Parses HTML: turns the bytes of a body into its text and its tree, however broken it is."""

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
few tags, it takes a fifth of a second at worst. With many, it may take a second."""

MANY_REOPENED = 50

SMALL_BYTES = 48 * 1024
"""A page of this size cannot have a tag with so many attributes that they take a second."""

_NUL = "\0"
"""Separates texts: an HTML parser never lets it into a tree."""

_REOPENED = re.compile(
    rb"<(?=[bcefhinstu])"  # Quickly rules out most tags.
    rb"(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u|body|html)[\s/]"
)
"""Tags with attributes that a parser opens again in every paragraph until they are closed, if they
differ; and tags that collect the attributes of all tags with the same name."""

_ATTRIBUTE = rb"""[ \t\n\f\r/]*+[^ \t\n\f\r/>%(not)b][^ \t\n\f\r/>=%(not)b]*+(?:
    [ \t\n\f\r]*+=[ \t\n\f\r]*+(?:
        "[^"%(not)b]*+" | '[^'%(not)b]*+' | (?!["'])[^ \t\n\f\r>%(not)b]*+(?![^ \t\n\f\r>])
    ) | (?![ \t\n\f\r]*+=)
)"""
_TAG = rb"[^ \t\n\f\r/>%%(not)b]*+(?:%b){0,50}+[ \t\n\f\r/]*+" % _ATTRIBUTE
"""A tag with a sane number of attributes: a parser compares each with all those before it. This is
HTML's own grammar: a value for a parser is a value here, and does not end the tag."""
_USUAL_TAG = rb"""[a-z0-9]{0,20}+(?:[ ][a-z]{1,30}+="[^"]{0,200}+"){0,10}+>"""
"""Most tags look like this, which is recognised in half the time."""
_PLAIN_TAG = (_TAG % {b"not": b"<"}) + rb"(?:>|\Z)"
_UNCLEAR_TAG = re.compile(rb"<[a-zA-Z](?!%b)(?!%b)" % (_USUAL_TAG, _PLAIN_TAG), re.VERBOSE)
"""The start of a possible tag that has no end before the next possible tag. No byte is read for two
of them, so this takes linear time."""
_SANE_TAG = re.compile(rb"<[a-zA-Z]" + (_TAG % {b"not": b""}) + rb">", re.VERBOSE)

MANY_UNCLEAR, SANE_TAG_BYTES = 1_000, 4 * 1024
"""How many of these are checked again, and how many bytes of each. Some values, and many scripts,
contain a `<`."""

_NOT_FOR_PAGES = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
)
"""Codecs of Python that no page uses. Some take quadratic time."""


def text(body: bytes, content_type: str) -> str:
    """The body as text. Bytes that cannot be decoded become U+FFFD."""
    return to_unicode(*_encoded(body, content_type))


def as_utf8(body: bytes, content_type: str) -> bytes:
    """The body as Lexbor reads it: in UTF-8. If it is UTF-8 already, it is not copied."""
    raw, encoding = _encoded(body, content_type)
    return raw if encoding == "utf-8" else to_unicode(raw, encoding).encode()


def tree(body: bytes, content_type: str, *, is_tried: bool = False) -> tuple[LexborNode, ...]:
    """The root element. Nothing for a body without markup: empty or binary. Raises Unparsable.

    An odd page is first tried in another process, unless it was tried before.
    """
    source = as_utf8(body, content_type)
    if not source or source.isspace() or _is_binary(source, content_type):
        return ()
    if not is_tried:
        refuse_endless(source)
    try:
        root = LexborHTMLParser(source).root
    except SelectolaxError:  # No memory left: a small page can need gigabytes for its elements.
        raise Unparsable("the page takes too much memory to parse") from None
    return () if root is None else (root,)


def visible_text(scope: Sequence[LexborNode]) -> str:
    """The text of a tree, without scripts and style sheets. The tree is not changed."""
    return " ".join(_visible_text(root) for root in scope)


def _visible_text(root: LexborNode) -> str:
    rest = f"{_NUL}{root.text(separator=_NUL)}{_NUL}"
    parts = []
    begin = 0
    for hidden in root.css("script, style"):
        if not (code := hidden.text(separator=_NUL)):
            continue
        # This finds the next text that is the same. It does not have to be the same node.
        end = rest.find(f"{_NUL}{code}{_NUL}", begin)
        if end < 0:  # It is inside another one. Searching on would take quadratic time.
            break
        parts.append(rest[begin:end])
        begin = end + len(code) + 1
    return " ".join([*parts, rest[begin:]]).replace(_NUL, " ")


def _is_binary(source: bytes, content_type: str) -> bool:
    return b"\0" in source[:1024] and "html" not in content_type.lower()


def _encoded(body: bytes, content_type: str) -> tuple[bytes, str]:
    """The body without its byte order mark, and its most likely encoding."""
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
    """The encoding that a page declares, in which its forms are sent. If it declares none, the
    encoding in which the page is read."""
    encoding, _ = read_bom(body)
    named = encoding or _encoding_named(content_type) or html_body_declared_encoding(body)
    return named if named and _can_decode(named) else _encoded(body, content_type)[1]


_encoding_named = lru_cache(maxsize=256)(http_content_type_encoding)


def _declared(body: bytes) -> str | None:
    # ASCII is the same in all encodings of pages except ISO-2022-JP, which has escapes.
    if body.isascii() and b"\x1b" not in body:
        return "utf-8"
    return html_body_declared_encoding(body)


def _can_decode(encoding: str) -> bool:
    if encoding in _NOT_FOR_PAGES:
        return False
    try:
        b"x".decode(encoding, "replace")
    except (LookupError, ValueError):  # base64 and the like are codecs, but not for text.
        return False
    return True


def refuse_endless(html: bytes) -> None:
    """Raise Unparsable for a page that takes too much time or memory to parse. Unless a few quick
    checks show that it is harmless, it is tried in another process."""
    if is_odd(html):
        trial.check(html)


def is_odd(html: bytes) -> bool:
    """Whether a page must be tried in another process before it is parsed."""
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
