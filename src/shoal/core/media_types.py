"""The media type of a file: by its first bytes if they tell, else by what the server says. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from shoal.errors import ConfigError

UNKNOWN = "application/octet-stream"
MAX_LENGTH = 100
PROBE = 1024
"""How many of the first bytes are looked at."""

_STARTS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\1\0", "image/x-icon"),
    (b"%PDF-", "application/pdf"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_FTYP = {
    b"avif": "image/avif",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"qt  ": "video/quicktime",
}
_WEAK = ("image/bmp", "audio/mpeg", "image/x-icon", "audio/ogg", "video/webm")
"""Types recognised by very few bytes, or by a container: the server's type is more precise."""
_MARKUP = {
    b"<!doctype html": "text/html",
    b"<html": "text/html",
    b"<head": "text/html",
    b"<body": "text/html",
    b"<!doctype svg": "image/svg+xml",
    b"<svg": "image/svg+xml",
}
_BESIDE = ((b"<!--", b"-->"), (b"<?xml", b"?>"))
"""What may stand before the first tag: its beginning and its end."""
_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]*/[a-z0-9][a-z0-9!#$&^_.+-]*")
_PATTERN = re.compile(r"(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)/(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)")

_SUFFIXES = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
    "image/avif": "avif",
    "image/heic": "heic",
    "image/bmp": "bmp",
    "image/tiff": "tif",
    "image/x-icon": "ico",
    "image/vnd.microsoft.icon": "ico",
    "image/svg+xml": "svg",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "application/gzip": "gz",
    "application/json": "json",
    "application/xml": "xml",
    "application/rtf": "rtf",
    "application/epub+zip": "epub",
    "application/msword": "doc",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/wav": "wav",
    "video/mp4": "mp4",
    "video/webm": "webm",
    "video/quicktime": "mov",
    "video/x-msvideo": "avi",
    "text/plain": "txt",
    "text/csv": "csv",
    "text/html": "html",
    "text/xml": "xml",
}
"""Suffixes for the names of exported files. Text from a page never becomes part of a name."""


def media_type(body: bytes, content_type: str) -> str:
    """The media type of a file.

    Servers label error pages as `image/jpeg`: if the bytes tell the type reliably, they win.
    """
    said = content_type.partition(";")[0].strip().lower()
    said = said if len(said) <= MAX_LENGTH and _TYPE.fullmatch(said) else UNKNOWN
    found = _by_start(body[:PROBE])
    if found is None or (found in _WEAK and said not in (UNKNOWN, "text/plain", "text/html")):
        return said
    return found


def _by_start(start: bytes) -> str | None:
    for magic, name in _STARTS:
        if start.startswith(magic):
            return name
    if start.startswith(b"RIFF"):
        return _RIFF.get(start[8:12])
    if start[4:8] == b"ftyp":
        return _FTYP.get(start[8:12], "video/mp4")
    return _by_tag(start.removeprefix(b"\xef\xbb\xbf"))


def _by_tag(text: bytes) -> str | None:
    """The kind of markup, by its first tag."""
    text = text.lstrip()
    while ends := [end for begin, end in _BESIDE if text.startswith(begin)]:
        text = text.partition(ends[0])[2].lstrip()
    lower = b" ".join(text[:40].lower().split())
    return next((name for tag, name in _MARKUP.items() if lower.startswith(tag)), None)


def suffix_of(name: str) -> str:
    """The suffix for the names of files of a media type, without the dot."""
    return _SUFFIXES.get(name, "bin")


def is_wanted(name: str, patterns: Sequence[str]) -> bool:
    """Whether a type matches one of the patterns, such as `image/*` or `application/pdf`. Without
    patterns, every type does."""
    return not patterns or any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    kind, _, exact = name.partition("/")
    wanted_kind, _, wanted = pattern.lower().partition("/")
    return wanted_kind in ("*", kind) and wanted in ("*", exact)


def check_patterns(patterns: Iterable[str]) -> None:
    """Check patterns of media types. Raises ConfigError for the first that is none."""
    for pattern in patterns:
        if not _PATTERN.fullmatch(pattern.lower()):
            raise ConfigError(
                f"{pattern!r:.80} is no media type: write 'image/*' or 'application/pdf'"
            )
