"""Entries of the stream: what every store takes is let through, and nothing else."""

from __future__ import annotations

import math
from typing import Any, get_args

import msgspec
import pytest

from contract.results_suite import CRAWL, some_item, some_page, some_rejected
from shoal.config import History
from shoal.errors import StorageFailed
from shoal.results.port import Batch, Keep
from shoal.results.stream import wire

YEAR_10000 = 253_402_300_800
NO_TIMES = (-1.0, math.nan, math.inf, -math.inf, YEAR_10000)
NO_COUNTS = (-1, 2**31)

OUT_OF_RANGE = {
    "fingerprint": (b"", b"1234567", b"123456789"),
    "started_at": NO_TIMES,
    "duration_s": NO_TIMES,
    "simhash": (2**63,),  # A smaller one cannot even be written.
    "attempt": NO_COUNTS,
    "items": NO_COUNTS,
    "links": NO_COUNTS,
    "status": (-(2**31) - 1, 2**31),
    "body_bytes": (-1, 2**63),
}
IN_RANGE: dict[str, tuple[Any, ...]] = {
    "fingerprint": (b"\0" * 8, b"\xff" * 8),
    "started_at": (0.0, YEAR_10000 - 1.0),
    "duration_s": (0.0,),
    "simhash": (-(2**63), 2**63 - 1, None),
    "attempt": (0, 2**31 - 1),
    "items": (0, 2**31 - 1),
    "links": (0, 2**31 - 1),
    "status": (-(2**31), 2**31 - 1, None),
    "body_bytes": (0, 2**63 - 1),
}
NO_DATA = (
    *(
        b"",
        b"[1]",
        b'"text"',
        b"null",
        b"{",
        b"{} {}",
        b'{"a":NaN}',
        b'{"a":\xff}',
        b'{"a":"\xff"}',
    ),
    *(b'{"a":"\\x"}', b'{"a":[1,\n2]}', b'{"a":1}\r', b'["\\ud800"]', b'{"b":"\\ud800","a":NaN}'),
    b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
)
ODD_DATA = (
    *(b"{}", b'{"a":[{"b":null}]}', b'{"a":"\\ud800"}', b'{"a":"\\udc00 \\u0000"}'),
    *(b'{"n":1e400,"a":"\\ud800"}', b'{"a":' + b"9" * 5_000 + b',"b":"\\ud800"}'),
)
NO_HISTORY: tuple[Any, ...] = ("sometimes", "off\n")
KEEPS = (
    *(Keep(history) for history in NO_HISTORY),
    *(Keep(refresh_s=-1.0), Keep(refresh_s=math.nan)),
    *(Keep(refresh_s=math.inf), Keep(refresh_s=101 * 366 * 86_400.0)),
)


def pages(values: dict[str, tuple[Any, ...]]) -> list[Batch]:
    return [
        Batch([some_page(), some_page(**{name: value})])
        for name, several in values.items()
        for value in several
    ]


def records(values: dict[str, tuple[Any, ...]]) -> list[Batch]:
    """Items and rejected items that have one of these values."""
    batches = []
    for fingerprint in values["fingerprint"]:
        batches.append(Batch(items=[some_item(fingerprint=fingerprint)]))
        batches.append(Batch(rejected=[some_rejected(fingerprint=fingerprint)]))
    for at in values["started_at"]:
        batches.append(Batch(items=[some_item(at=at)]))
        batches.append(Batch(rejected=[some_rejected(scraped_at=at)]))
    return batches


def datas(values: tuple[bytes, ...]) -> list[Batch]:
    return [Batch(items=[some_item(), some_item("k2", data=data)]) for data in values]


def read(encoded: bytes) -> object:
    return wire.read((b"1-0", [b"crawl", CRAWL.encode(), b"batch", encoded])).content


BAD = [*pages(OUT_OF_RANGE), *records(OUT_OF_RANGE), *datas(NO_DATA)]
BAD += [Batch(keep=keep) for keep in KEEPS]
GOOD = [*pages(IN_RANGE), *records(IN_RANGE), *datas(ODD_DATA)]
GOOD += [Batch(keep=Keep(history, 1.5)) for history in get_args(History)]


@pytest.mark.parametrize("batch", BAD, ids=lambda batch: f"{batch}"[:150])
def test_what_no_store_takes_is_not_ours(batch: Batch) -> None:
    with pytest.raises(wire.ForeignEntry, match=r"\w"):
        read(msgspec.msgpack.encode(batch))
    with pytest.raises(StorageFailed, match="not a batch of results: "):
        wire.encode(batch)


@pytest.mark.parametrize("batch", GOOD, ids=lambda batch: f"{batch}"[:150])
def test_what_stores_take_passes(batch: Batch) -> None:
    (encoded,) = wire.encode(batch)
    assert read(encoded) == batch


def test_the_reason_says_where() -> None:
    encoded = msgspec.msgpack.encode(Batch([some_page(), some_page(attempt=-1)]))
    with pytest.raises(wire.ForeignEntry, match=r"`int` >= 0 - at `\$\.pages\[1\]\.attempt`"):
        read(encoded)
