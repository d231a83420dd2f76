"""Pages designed to take very long to parse. Each family can grow to any size."""

from __future__ import annotations

from collections.abc import Callable

Family = Callable[[int], bytes]
"""Makes a page of about the given number of bytes."""


def _repeated(part: bytes, before: bytes = b"") -> Family:
    return lambda size: before + part * (size // len(part))


def _numbered(part: bytes, before: bytes = b"", after: bytes = b"") -> Family:
    """A family whose parts contain numbers, so that no two are the same."""

    def grow(size: int) -> bytes:
        count = size // (len(part) + 2 + len(after))
        return before + b"".join(part % number for number in range(count)) + after * count

    return grow


FAMILIES: dict[str, Family] = {
    "end tags that close nothing": _repeated(b"<svg></x>"),
    "nested blocks": _repeated(b"<div>"),
    "nested lists": _repeated(b"<ul><li>"),
    "nested unknown elements": _numbered(b"<t%d>"),
    "nested in foreign content": _repeated(b"<link>", b"<svg>"),
    "blocks in foreign content": _repeated(b"<address>", b"<svg><foreignObject>"),
    "foreign blocks in foreign content": _repeated(b"<svg><desc>"),
    "nested templates": _repeated(b"<template>"),
    "nested selects": _repeated(b"<select><option>"),
    "nested framesets": _repeated(b"<frameset>"),
    "nested tables": _repeated(b"<table><tr><td>"),
    "elements in the wrong place of a table": _repeated(b"<table><b>x"),
    "links around tables": _repeated(b"<a><table>"),
    "formatting around blocks": _repeated(b"<b><div>"),
    "different formatting": _numbered(b"<b a%d=1>"),
    "different formatting in paragraphs": _numbered(b"<b a%d=1><p>"),
    "different formatting, reopened": _numbered(b"<b a%d=1>", b"<div>", b"</div><div>x"),
    "different formatting, adopted": _numbered(b"<b a%d=1><div>", after=b"</b></b></b></b>"),
    "attributes": _numbered(b" a%d=1", b"<a"),
    "attributes without a value": _numbered(b" a%d", b"<a"),
    "attributes that look like the end of their tag": _numbered(b' a%d=">"', b"<a"),
    "attributes that look like tags": _numbered(b' <a%d="x>"', b"<a"),
    "attributes of the root, tag by tag": _numbered(b"<html a%d=1>"),
    "attributes of the body, tag by tag": _numbered(b"<body a%d=1>"),
    "comments without an end": _repeated(b"<!--"),
    "entities": _repeated(b"&notit;"),
    "zeros": _repeated(b"\0x", b"<table>"),
    "scripts in comments in a script": _repeated(b"<!--<script>", b"<script>"),
}
