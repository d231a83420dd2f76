"""What a file is: by its bytes, else by what the server says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.media_types import UNKNOWN, is_wanted, media_type, suffix_of

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    ("body", "said", "expected"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "text/html; charset=utf-8", "image/png"),
        (PNG, "", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/png", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/jpeg", "image/webp"),
        (b"\0\0\0 ftypavif", "", "image/avif"),
        (b"\0\0\0 ftypisom", "", "video/mp4"),
        (b"%PDF-1.7", "application/octet-stream", "application/pdf"),
        (b"<!DOCTYPE html><p>sorry", "image/jpeg", "text/html"),
        (b"\xef\xbb\xbf \n<!-- sorry --> <html lang=en>", "image/jpeg", "text/html"),
        (b"<?xml version='1.0'?><!-- drawn --><svg xmlns=''>", "text/plain", "image/svg+xml"),
        (b"<?xml version='1.0'?><rss>", "application/rss+xml", "application/rss+xml"),
        (b"<!-- never closed", "image/png", "image/png"),
        # What they have in common with others is too little to know better than the server.
        (b"ID3 tags of an odd kind", "audio/x-odd", "audio/x-odd"),
        (b"BM", "", "image/bmp"),
        (b"PK\x03\x04", "application/vnd.ms-excel", "application/vnd.ms-excel"),
        (b"a,b\n", " Text/CSV ; header=present", "text/csv"),
        (b"?", "../../etc/passwd", UNKNOWN),
        (b"?", "image/" + "x" * 200, UNKNOWN),
        (b"", "", UNKNOWN),
    ],
)
def test_a_type(body: bytes, said: str, expected: str) -> None:
    assert media_type(body, said) == expected


@given(st.binary(max_size=60), st.text(max_size=40))
def test_nothing_that_comes_is_an_error(body: bytes, said: str) -> None:
    kind = media_type(body, said)
    assert is_wanted(kind, ())
    assert is_wanted(kind, ("*/*",))
    assert suffix_of(kind).isalnum()


def test_of_a_file_only_the_beginning_is_looked_at() -> None:
    assert media_type(b" " * 100 + b"<html>", "image/png") == "text/html"
    assert media_type(b"<!---->" * 100_000 + b"<html>", "image/png") == "image/png"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [((), True), (("image/*",), True), (("IMAGE/PNG",), True), (("image/jpeg", "text/*"), False)],
)
def test_which_types_are_wanted(patterns: tuple[str, ...], expected: bool) -> None:
    assert is_wanted("image/png", patterns) is expected
