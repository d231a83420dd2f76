"""Bodies: what they decompress to, and where they are cut off."""

from __future__ import annotations

import tracemalloc
import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import FetchError, TooLarge
from shoal.fetch.http.bodies import MAX_GZIP_MEMBERS, Body

TEXT = b"All happy shoals are alike; each unhappy shoal is unhappy in its own way. " * 50
LIMIT = 1024 * 1024

GZIP = 31
ZLIB = 15
RAW = -15


def packed(data: bytes, window: int = GZIP) -> bytes:
    return zlib.compress(data, wbits=window)


def read(encoding: str, *pieces: bytes, limit: int = LIMIT) -> bytes:
    body = Body(encoding, limit)
    for piece in pieces:
        body.feed(piece)
    return body.finish()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("", TEXT),
        ("identity", TEXT),
        ("gzip", packed(TEXT)),
        ("GZip ", packed(TEXT)),
        ("x-gzip", packed(TEXT)),
        ("deflate", packed(TEXT, ZLIB)),
        ("deflate", packed(TEXT, RAW)),
        ("deflate, gzip", packed(packed(TEXT, ZLIB))),
        ("gzip", packed(TEXT[:100]) + packed(TEXT[100:])),
        ("gzip", packed(TEXT) + bytes(100)),
        ("gzip", packed(TEXT) + b"\n"),
        ("deflate", packed(TEXT, ZLIB) + packed(b"not more text", ZLIB)),
    ],
)
def test_decompresses(encoding: str, data: bytes) -> None:
    assert read(encoding, data) == TEXT
    assert read(encoding, *(bytes([byte]) for byte in data)) == TEXT


@given(st.binary(max_size=2000), st.integers(0, 2000), st.sampled_from([GZIP, ZLIB, RAW]))
def test_any_data_cut_anywhere(data: bytes, cut: int, window: int) -> None:
    whole = packed(data, window)
    encoding = "gzip" if window == GZIP else "deflate"
    assert read(encoding, whole[:cut], whole[cut:]) == data


@given(st.sampled_from(["gzip", "deflate", "deflate, gzip"]), st.binary(max_size=200))
def test_garbage_never_breaks_it(encoding: str, data: bytes) -> None:
    with suppress(FetchError):
        assert len(read(encoding, data, limit=1000)) <= 1000


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_empty(encoding: str) -> None:
    assert read(encoding) == b""


@pytest.mark.parametrize("window", [GZIP, ZLIB, RAW])
@pytest.mark.parametrize("left", [1, 10, -1])
def test_truncated(window: int, left: int) -> None:
    encoding = "gzip" if window == GZIP else "deflate"
    with pytest.raises(FetchError, match="ends too early") as caught:
        read(encoding, packed(TEXT, window)[:left])
    assert caught.value.retryable


def test_truncated_in_a_later_member() -> None:
    with pytest.raises(FetchError, match="ends too early"):
        read("gzip", packed(TEXT) + packed(TEXT)[:-1])


@pytest.mark.parametrize(
    "data", [TEXT, packed(TEXT)[:50] + b"?" * 50, packed(TEXT)[:-8] + bytes(8)]
)
def test_corrupt(data: bytes) -> None:
    with pytest.raises(FetchError, match="corrupt") as caught:
        read("gzip", data)
    assert caught.value.retryable


@pytest.mark.parametrize(
    "encoding", ["br", "zstd", "gzip, br", "gzip, gzip, gzip", "\x1b[31m" * 100]
)
def test_an_encoding_we_cannot_read(encoding: str) -> None:
    with pytest.raises(FetchError, match=r"^cannot read Content-Encoding: '") as caught:
        Body(encoding, LIMIT)
    assert not caught.value.retryable
    assert str(caught.value).isprintable()


def test_up_to_the_limit() -> None:
    assert read("", TEXT, limit=len(TEXT)) == TEXT
    assert read("gzip", packed(TEXT), limit=len(TEXT)) == TEXT


def test_over_the_limit() -> None:
    with pytest.raises(TooLarge, match=rf"^body larger than {len(TEXT) - 1} bytes"):
        read("", TEXT, limit=len(TEXT) - 1)
    with pytest.raises(TooLarge, match=r"^decompressed body larger"):
        read("gzip", packed(TEXT), limit=len(TEXT) - 1)


def test_over_the_limit_over_several_members() -> None:
    with pytest.raises(TooLarge):
        read("gzip", packed(TEXT) + packed(TEXT), limit=len(TEXT) * 2 - 1)


@pytest.mark.parametrize("encoding", ["gzip", "gzip, gzip"])
def test_a_bomb_costs_no_more_than_the_limit(encoding: str) -> None:
    bomb = packed(bytes(64 * LIMIT))
    if encoding == "gzip, gzip":
        bomb = packed(bomb)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            read(encoding, bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT


def test_many_tiny_members_are_cut_off() -> None:
    member = packed(b"")
    assert read("gzip", member * MAX_GZIP_MEMBERS) == b""
    with pytest.raises(FetchError, match="more than 1000 files"):
        read("gzip", member * (MAX_GZIP_MEMBERS + 1))
