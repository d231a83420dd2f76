"""What every archive must do. A backend subclasses the suite and supplies one fixture:

    class TestMyArchive(ArchiveContract):
        @pytest.fixture
        async def connect(self) -> AsyncIterator[Connect]: ...

Each call of `connect` opens the same store once more, to write in the format it is given; the store
was empty before the test, and the fixture closes what was opened.
"""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from shoal.archive.composed import ObjectArchive
from shoal.archive.names import blob_name
from shoal.archive.objects import Objects
from shoal.archive.port import Archive, RawPage
from shoal.core.content import page_digest
from shoal.core.task import Task
from shoal.errors import StorageFailed
from support.warc_files import kinds_in, offsets_of, read_by_fastwarc, read_by_warcio

CRAWL = "shop"
FORMATS = ("pages", "warc")
CRAWLS = ("../x", "a/b", ".", "..", ".hidden", "", "a%2Fb", "%2E", "Grüße €", "\udcff", "blobs")
ODD_HEADERS = [
    ("Content-Type", "text/html; charset=utf-8"),
    ("Set-Cookie", "a=1"),
    ("set-cookie", "b=2"),
    ("Content-Encoding", "gzip"),
    ("Content-Length", "12"),
    ("Transfer-Encoding", "chunked"),
    ("X-Archive-Orig-Content-Length", "13"),
    ("X-Empty", ""),
    ("X-Utf8", "Grüße"),
    ("X-Bytes", b"\xff\x80 caf\xe9".decode("utf-8", "surrogateescape")),
]
OF_TRANSFER = {"content-encoding", "transfer-encoding"}


class Opened(NamedTuple):
    """An archive, and the objects it is made of."""

    archive: Archive
    objects: Objects


Connect = Callable[[str], Opened]


def opened(objects: Objects, fmt: str) -> Opened:
    """An archive that stores its pages in these objects, in the given format."""
    return Opened(ObjectArchive(objects, fmt), objects)


def some_page(number: int = 1, body: bytes = b"<h1>One</h1>", **changes: Any) -> RawPage:
    """A page; each change overrides a field."""
    values: dict[str, Any] = {
        "task": Task(url=f"https://shop.example/{number}?a=b", job_type="product", depth=2),
        "fingerprint": number.to_bytes(8),
        "status": 200,
        "headers": [("Content-Type", "text/html")],
        "fetched_at": 1_700_000_000.123456789 + number,
        "body": body,
        "digest": page_digest(body),
    }
    return RawPage(**(values | changes))


async def all_pages(archive: Archive, crawl: str = CRAWL) -> list[RawPage]:
    """Every page of a crawl. Fails if one is unreadable."""
    trouble: list[StorageFailed] = []
    pages = [page async for page in archive.pages(crawl, trouble.append)]
    assert not trouble
    return pages


async def blobs_of(objects: Objects, *bodies: bytes) -> list[str]:
    """The names of all blobs in the folders to which these bodies belong."""
    folders = sorted({f"blobs/{page_digest(body).hex()[:2]}" for body in bodies})
    return [name for folder in folders for name in await objects.names(folder)]


class ArchiveContract:
    """The tests that every archive has to pass."""

    @pytest.fixture(params=FORMATS)
    def fmt(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)

    @pytest.fixture
    def archive(self, connect: Connect, fmt: str) -> Archive:
        return connect(fmt).archive

    # What is stored is what is read

    async def test_an_archive_that_stored_nothing_has_no_pages(self, archive: Archive) -> None:
        assert await all_pages(archive) == []

    async def test_pages_come_back_as_they_were(self, archive: Archive) -> None:
        meta = {"note": ["Grüße", 1.5, None], "text": "two\nlines\u2028and more"}
        full = Task(url="https://shop.example/x", meta=meta, method="POST", body="a=b", parent="0f")
        pages = [
            some_page(1),
            some_page(2, b"", status=204, headers=[]),
            some_page(3, bytes(range(256)) * 4, headers=ODD_HEADERS, status=299),
            some_page(4, b"HTTP/1.1 200 OK\r\n\r\nWARC/1.1\r\n\r\n", task=full),
        ]
        places = await archive.store(CRAWL, pages)
        assert await all_pages(archive) == pages
        assert [await archive.read(place) for place in places] == pages
        assert len(set(places)) == len(pages)

    async def test_a_large_body_comes_back(self, archive: Archive) -> None:
        pages = [some_page(1, random.Random(1).randbytes(5_000_000)), some_page(2)]
        await archive.store(CRAWL, pages)
        assert await all_pages(archive) == pages

    async def test_pages_come_in_the_order_they_were_stored(self, archive: Archive) -> None:
        pages = [some_page(number, f"{number}".encode()) for number in range(30)]
        for start in range(0, 30, 10):
            await archive.store(CRAWL, pages[start : start + 10])
        assert await all_pages(archive) == pages

    async def test_crawls_do_not_mix_whatever_they_are_called(self, archive: Archive) -> None:
        stored = {
            crawl: some_page(n, crawl.encode("utf-8", "surrogatepass") or b"-")
            for n, crawl in enumerate(CRAWLS)
        }
        for crawl, page in stored.items():
            (place,) = await archive.store(crawl, [page])
            assert await archive.read(place) == page
        for crawl, page in stored.items():
            assert await all_pages(archive, crawl) == [page]

    async def test_storing_again_does_no_harm(self, archive: Archive) -> None:
        first = await archive.store(CRAWL, [some_page()])
        again = await archive.store(CRAWL, [some_page()])
        assert await all_pages(archive) == [some_page()] * 2
        assert [await archive.read(place) for place in first + again] == [some_page()] * 2

    async def test_several_writers_do_not_get_in_each_others_way(
        self, connect: Connect, fmt: str
    ) -> None:
        writers = [connect(fmt).archive for _ in range(4)]
        batches = [[some_page(n * 10 + i, f"{i}".encode()) for i in range(10)] for n in range(4)]
        stores = [w.store(CRAWL, b) for w, b in zip(writers, batches, strict=True)]
        await asyncio.gather(*stores)
        found = await all_pages(connect(fmt).archive)
        assert sorted(page.fingerprint for page in found) == [n.to_bytes(8) for n in range(40)]

    async def test_it_can_be_checked_more_than_once(self, archive: Archive) -> None:
        await archive.check()
        await archive.check()
        assert await all_pages(archive) == []

    # Formats

    async def test_what_was_stored_in_another_format_is_read(self, connect: Connect) -> None:
        places = []
        for number, fmt in enumerate(["warc", "pages", "warc"]):
            places += await connect(fmt).archive.store(CRAWL, [some_page(number)])
        pages = [some_page(number) for number in range(3)]
        for fmt in FORMATS:
            reader = connect(fmt).archive
            assert await all_pages(reader) == pages
            assert [await reader.read(place) for place in places] == pages

    async def test_the_same_body_is_stored_once(self, connect: Connect) -> None:
        body = b"<h1>The same</h1>"
        for number in range(2):
            archive, objects = connect("pages")
            await archive.store(CRAWL, [some_page(number, body), some_page(number + 10, body)])
            await archive.store("another", [some_page(number, body)])
        assert len(await blobs_of(objects, body)) == 1
        assert [page.body for page in await all_pages(archive)] == [body] * 4

    async def test_a_body_that_was_just_stored_is_not_sent_again(self, connect: Connect) -> None:
        archive, objects = connect("pages")
        sent: list[str] = []
        put = objects.put

        async def noted_put(name: str, data: bytes) -> bool:
            sent.append(name)
            return await put(name, data)

        objects.put = noted_put  # type: ignore[method-assign]
        for number in range(3):
            await archive.store(CRAWL, [some_page(number)])
        assert len([name for name in sent if name.startswith("blobs/")]) == 1
        assert sent[0].startswith("blobs/")

    async def test_other_tools_read_the_warc_files(self, connect: Connect) -> None:
        archive, objects = connect("warc")
        pages = [some_page(1, headers=ODD_HEADERS), some_page(2, b""), some_page(3, b"\r\n\r\n")]
        places = await archive.store(CRAWL, pages)
        (name,) = await objects.names(f"{CRAWL}/warc")
        data = await objects.get(name)
        assert kinds_in(data) == ["warcinfo", *["response", "metadata"] * len(pages)]
        offsets = [int(place.rpartition("#")[2]) for place in places]
        assert offsets_of(data, "response") == offsets
        for found in (read_by_warcio(data), read_by_fastwarc(data)):
            for page, response in zip(pages, found, strict=True):
                assert response[:2] == (page.task.url, page.status)
                assert response.body == page.body
                assert response.headers["content-length"] == str(len(page.body))
                assert response.headers.keys().isdisjoint(OF_TRANSFER)
            assert found[0].headers["x-archive-orig-content-encoding"] == "gzip"
        assert b"X-Bytes: \xff\x80 caf\xe9\r\n" in gzip.decompress(data)

    async def test_records_of_others_are_passed_over(self, connect: Connect) -> None:
        archive, objects = connect("warc")
        await archive.store(CRAWL, [some_page(1)])
        (name,) = await objects.names(f"{CRAWL}/warc")
        data = await objects.get(name)
        (response,), (metadata,) = offsets_of(data, "response"), offsets_of(data, "metadata")
        of_nobody = data[response:metadata]  # A response without a metadata record.
        foreign = data[:response] + of_nobody + data[response:] + of_nobody
        await objects.put(f"{CRAWL}/warc/99990101T000000Z-foreign.warc.gz", foreign)
        assert await all_pages(archive) == [some_page(1)] * 2

    # What goes wrong

    async def test_a_place_where_nothing_is(self, archive: Archive) -> None:
        (place,) = await archive.store(CRAWL, [some_page()])
        name, _, _ = place.rpartition("#")
        gone = name.replace("Z-", "Z-0")
        for wrong in (f"{name}#99999999", f"{gone}#1", name, "", "#", "../../x#1", "a/b/c#1"):
            with pytest.raises(StorageFailed):
                await archive.read(wrong)

    async def test_what_is_damaged_is_told_and_the_rest_is_read(
        self, connect: Connect, fmt: str
    ) -> None:
        archive, objects = connect(fmt)
        await archive.store(CRAWL, [some_page(1)])
        (name,) = await objects.names(f"{CRAWL}/{fmt}")
        good = await objects.get(name)
        for number, bad in enumerate([b"", b"no gzip at all", good[: len(good) // 2]]):
            await objects.put(f"{CRAWL}/{fmt}/00000101T00000{number}Z-bad.gz", bad)
        trouble: list[StorageFailed] = []
        pages = [page async for page in archive.pages(CRAWL, trouble.append)]
        assert pages == [some_page(1)]
        assert len(trouble) == 3
        assert all("-bad.gz" in str(error) for error in trouble)

    async def test_a_damaged_record_costs_no_other_page(self, connect: Connect) -> None:
        archive, objects = connect("warc")
        pages = [some_page(n, random.Random(n).randbytes(3_000)) for n in range(5)]
        await archive.store(CRAWL, pages)
        (name,) = await objects.names(f"{CRAWL}/warc")
        data = await objects.get(name)
        bodies, notes = offsets_of(data, "response"), offsets_of(data, "metadata")
        flipped = bytearray(data)
        for place in (bodies[1] + 1, notes[3] - 5):  # Its first bytes, and its checksum.
            flipped[place] ^= 0xFF
        cut = notes[2] - (notes[2] - bodies[2]) // 2
        without_a_byte = data[:cut] + data[cut + 1 :]
        mixed_up = data[: bodies[1]] + data[bodies[2] :]  # Undamaged, but one page is missing.
        no_warc = data[: bodies[2]] + gzip.compress(b"something else") + data[notes[2] :]
        crawls = {
            "flipped": (bytes(flipped), [0, 2, 4], 2),
            "byte": (without_a_byte, [0, 1, 3, 4], 1),
            "less": (mixed_up, [0, 2, 3, 4], 0),
            "other": (no_warc, [0, 1, 3, 4], 1),
            "late": (data + b"nothing of ours", [0, 1, 2, 3, 4], 1),
        }
        for crawl, (damaged, left, reports) in crawls.items():
            await objects.put(f"{crawl}/warc/1.warc.gz", damaged)
            trouble: list[StorageFailed] = []
            found = [page async for page in archive.pages(crawl, trouble.append)]
            assert found == [pages[number] for number in left], crawl
            assert len(trouble) == reports, crawl
            assert all(f"{crawl}/warc/1.warc.gz#" in str(error) for error in trouble)
        with pytest.raises(StorageFailed, match="is damaged"):
            await archive.read(f"flipped/warc/1.warc.gz#{bodies[1]}")
        assert await archive.read(f"flipped/warc/1.warc.gz#{bodies[2]}") == pages[2]

    async def test_a_wrong_body_in_a_warc_costs_no_other_page(self, connect: Connect) -> None:
        archive, objects = connect("warc")
        await archive.store(CRAWL, [some_page(1, b"one"), some_page(2, b"two")])
        (name,) = await objects.names(f"{CRAWL}/warc")
        data = await objects.get(name)
        response, metadata = offsets_of(data, "response")[0], offsets_of(data, "metadata")[0]
        changed = gzip.compress(gzip.decompress(data[response:metadata]).replace(b"one", b"1ne"))
        await objects.put("mixed/warc/1.warc.gz", changed + data[metadata:])
        trouble: list[StorageFailed] = []
        assert [page async for page in archive.pages("mixed", trouble.append)] == [
            some_page(2, b"two")
        ]
        assert ["its body is another one" in str(error) for error in trouble] == [True]

    async def test_a_body_that_is_gone_or_another_one_is_told(self, connect: Connect) -> None:
        archive, objects = connect("pages")
        await archive.store(CRAWL, [some_page(1, b"good")])
        (name,) = await objects.names(f"{CRAWL}/pages")
        log = gzip.decompress(await objects.get(name))
        for number, digest in enumerate([page_digest(b"never stored"), page_digest(b"mixed up")]):
            changed = log.replace(page_digest(b"good").hex().encode(), digest.hex().encode())
            await objects.put(f"{CRAWL}/pages/9-{number}.jsonl.gz", gzip.compress(changed))
        await objects.put(blob_name(page_digest(b"mixed up")), gzip.compress(b"other"))
        trouble: list[StorageFailed] = []
        pages = [page async for page in archive.pages(CRAWL, trouble.append)]
        assert pages == [some_page(1, b"good")]
        gone, mixed_up = map(str, trouble)
        assert gone.endswith("is gone")
        assert "is damaged" in mixed_up
