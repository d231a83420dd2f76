"""From a body's bytes to its text and its tree, however broken the body is."""

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

from shoal.errors import ShoalError

MAX_NESTING = 5_000
"""Open elements. Browsers stop at 512; Lexbor does not, and its time grows with their square."""
SMALL_BYTES = 64 * 1024
"""A page of this size cannot nest deep enough to hurt."""

_NUL = "\0"
"""Joins texts that are to be told apart: an HTML parser never lets one into a tree."""

_TAG = re.compile(rb"<(/?)([a-z][a-z0-9-]*)", re.IGNORECASE)
_CLOSED_BY_ITSELF = frozenset(
    b"area base br col embed hr img input link meta param source track wbr"
    b" p li dt dd td th tr thead tbody tfoot option optgroup colgroup".split()
)
_NOT_FOR_PAGES = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape"}
)
"""Codecs of Python that no page is written in; some take quadratic time."""


class Unparsable(ShoalError):
    """A page made to be parsed for hours, or into more memory than there is."""


def text(body: bytes, content_type: str) -> str:
    """The body as text. What cannot be decoded becomes U+FFFD."""
    return to_unicode(*_encoded(body, content_type))


def tree(body: bytes, content_type: str) -> tuple[LexborNode, ...]:
    """The root element; nothing for a body without markup: empty or binary. Raises Unparsable."""
    raw, encoding = _encoded(body, content_type)
    # Lexbor reads UTF-8 by itself, which saves a copy.
    source = raw if encoding == "utf-8" else to_unicode(raw, encoding).encode()
    if not source or source.isspace() or _is_binary(source, content_type):
        return ()
    _refuse_deep(source)
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


def _refuse_deep(html: bytes) -> None:
    # Two counts tell whether a closer look, which takes a while, is needed.
    if len(html) <= SMALL_BYTES or html.count(b"<") - 2 * html.count(b"</") <= MAX_NESTING:
        return
    depth = 0
    for tag in _TAG.finditer(html):
        if tag[2].lower() in _CLOSED_BY_ITSELF:
            continue
        depth = max(depth - 1, 0) if tag[1] else depth + 1
        if depth > MAX_NESTING:
            raise Unparsable(f"the page nests more than {MAX_NESTING} elements")
