"""Sitemaps as sites have them, and as those have them who mean harm."""

from __future__ import annotations

import gzip
import random
import tracemalloc
import zlib
from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.seeds import sitemap_xml
from shoal.seeds.sitemap_xml import CHUNK_BYTES, BadSitemap, Location, parse_lastmod, read_sitemap

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
IMAGES = 'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'


def urlset(*entries: str) -> bytes:
    return f'<?xml version="1.0"?><urlset {NAMESPACE} {IMAGES}>{"".join(entries)}</urlset>'.encode()


def url(address: str, more: str = "") -> str:
    return f"<url><loc> {address}\n</loc>{more}</url>"


def all_in(body: bytes) -> list[Location]:
    return [location for location in read_sitemap(body) if location is not None]


def read_as_far_as_it_goes(body: bytes) -> tuple[list[str], str]:
    found: list[str] = []
    try:
        for location in read_sitemap(body):
            if location is not None:
                found.append(location.url)  # noqa: PERF401 - what comes before the error counts
    except BadSitemap as error:
        return found, str(error)
    return found, ""


def test_urls_and_when_they_changed() -> None:
    body = urlset(
        url("https://a.example/1?a=1&amp;b=2", "<lastmod>2026-11-01</lastmod>"), url("/2")
    )
    moment = datetime(2026, 11, 1, tzinfo=UTC).timestamp()
    assert all_in(body) == [
        Location("https://a.example/1?a=1&b=2", moment),
        Location("/2"),
    ]


def test_an_index_names_sitemaps() -> None:
    body = f"<sitemapindex {NAMESPACE}><sitemap><loc>/a.xml</loc></sitemap></sitemapindex>"
    assert all_in(body.encode()) == [Location("/a.xml", is_sitemap=True)]


def test_images_are_no_pages_and_a_namespace_is_not_needed() -> None:
    image = (
        "<image:image><image:loc>/picture.jpg</image:loc></image:image><image:loc>/x</image:loc>"
    )
    assert read_as_far_as_it_goes(urlset(url("/1", image)))[0] == ["/1"]
    assert read_as_far_as_it_goes(b"<urlset><url><loc>/1</loc></url></urlset>") == (["/1"], "")


@pytest.mark.parametrize("padding", [b"", bytes(500)])
def test_gzip_may_be_several_files_in_a_row(padding: bytes) -> None:
    whole = urlset(*(url(f"https://a.example/{n}") for n in range(50)))
    parts = (gzip.compress(whole[at : at + 100]) for at in range(0, len(whole), 100))
    found = list(filter(None, read_sitemap(b"".join(parts) + padding)))
    assert [location.url for location in found] == [f"https://a.example/{n}" for n in range(50)]


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_a_plain_list_packed_or_not(pack: type) -> None:
    body = pack(b"https://a.example/1\r\n\nhttps://a.example/2")
    assert read_as_far_as_it_goes(body) == (["https://a.example/1", "https://a.example/2"], "")


def test_lines_that_end_where_a_piece_ends() -> None:
    lines = [f"https://a.example/{number:013}" for number in range(10_000)]
    assert CHUNK_BYTES % len(lines[0] + "\n") == 0
    assert read_as_far_as_it_goes("\n".join(lines).encode()) == (lines, "")


def test_fifty_thousand_entries_are_not_held() -> None:
    body = gzip.compress(urlset(*(url(f"https://a.example/{n}") for n in range(50_000))))
    tracemalloc.start()
    count = sum(1 for location in read_sitemap(body) if location is not None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 50_000
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("body", "found", "says"),
    [
        (b"<!DOCTYPE html><html></html>", [], "HTML"),
        (b"\n<HTML><body>", [], "HTML"),
        (b"<rss></rss>", [], "<rss>, not a sitemap"),
        (urlset(url("/1"), url("/2"))[:-20], ["/1"], "not whole"),
        (gzip.compress(urlset(url("/1")))[:-30], None, ""),
        (b"\x1f\x8bgarbage", [], "not gzip"),
        (
            b'<!DOCTYPE x [<!ENTITY a "b">]><urlset><url><loc>&a;</loc></url></urlset>',
            [],
            "entities",
        ),
        (b"<urlset><url><loc>/1</loc></url></nothing>", ["/1"], "not whole"),
    ],
)
def test_what_is_broken_is_said_and_what_came_before_counts(
    body: bytes, found: list[str] | None, says: str
) -> None:
    got, why = read_as_far_as_it_goes(body)
    assert why
    assert says in why
    if found is not None:
        assert got == found


@pytest.mark.parametrize(
    ("start", "says"), [(b"<urlset>", "more than 64 MB"), (b"", "neither XML nor lines of text")]
)
def test_a_bomb_is_cut_off(start: bytes, says: str) -> None:
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(start)
    body += b"".join(packer.compress(b" " * 1_000_000) for _ in range(100)) + packer.flush()
    assert len(body) < 200_000
    assert read_as_far_as_it_goes(body) == ([], says)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (b"<a/>" * 101, "more than 100 elements"),
        (b"<a>" * 60, "more than 50 elements, one in the other"),
        (b"<!--" + b"x" * 2 * CHUNK_BYTES, "a tag of more than 32 kB"),
        (b"<a b='" + b"x" * 2 * CHUNK_BYTES, "a tag of more than 32 kB"),
    ],
)
def test_what_was_made_to_take_long_is_not_read_on(
    monkeypatch: pytest.MonkeyPatch, more: bytes, says: str
) -> None:
    monkeypatch.setattr(sitemap_xml, "MAX_ELEMENTS", 100)
    start = b"<urlset><url><loc>/1</loc></url>"
    assert read_as_far_as_it_goes(start + more) == (["/1"], says)


def test_a_tag_without_end_is_not_waited_for() -> None:
    pieces = read_sitemap(b"<urlset><!--" + b"x" * 100 * CHUNK_BYTES)
    with pytest.raises(BadSitemap, match="a tag of more than 32 kB"):
        list(islice(pieces, 3))


def test_what_is_packed_is_not_copied_over_and_over() -> None:
    """However large it is, unpacking one more piece takes no memory to speak of."""
    body = gzip.compress(random.Random(1).randbytes(20 * CHUNK_BYTES), compresslevel=0)
    tracemalloc.start()
    sizes = [len(chunk) for chunk in sitemap_xml._unpacked(body)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sum(sizes) == 20 * CHUNK_BYTES
    assert peak < 10 * CHUNK_BYTES


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-15T10:00:00+02:00", datetime(2026, 11, 15, 8, tzinfo=UTC)),
        ("2026-11-15T10:00Z", datetime(2026, 11, 15, 10, tzinfo=UTC)),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times(text: str, moment: datetime | None) -> None:
    assert parse_lastmod({"lastmod": text}) == (moment and moment.timestamp())


@given(st.binary(max_size=300))
def test_garbage_never_raises_anything_else(body: bytes) -> None:
    read_as_far_as_it_goes(body)
