"""Pickles of scrapy-redis: plain data is read, and a pickle that is a program is never run."""

from __future__ import annotations

import builtins
import codecs
import functools
import os
import pickle
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import scrapy
from hypothesis import given
from hypothesis import strategies as st

from shoal.scrapy.migration.unpickling import BadPickle, load


class Spider(scrapy.Spider):
    name = "shop"

    def product(self, response: Any) -> None: ...


class Calls:
    """Pickled, it is a call."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def deep(levels: int) -> bytes:
    return b"\x80\x05" + b"]" * levels + b"a" * (levels - 1) + b"."


def laughing() -> Any:
    """Small as a pickle, and endless when it is written out."""
    value: Any = []
    for _ in range(60):
        value = [value, value]
    return value


def doubling(*hashed_by: bytes) -> bytes:
    """A tuple of twice the one before, fifty times over; then it is hashed."""
    twice = [bytes((0x68, n, 0x68, n, 0x86, 0x94)) for n in range(50)]  # Get n, get n, pair, note.
    before, after = hashed_by
    return b"\x80\x04)\x94" + b"".join(twice) + before + b"h\x32" + after + b"."


def many_keys() -> bytes:
    """Each is within measure, and all together are not: a tuple of a thousand, a thousand times."""
    thousand = b"(" + b"N" * 1000 + b"t\x94"
    keys = b"".join(b"h\x00" + b"K" + bytes([n % 256]) + b"\x86N" for n in range(1000))
    return b"\x80\x04" + thousand + b"}(" + keys + b"u."


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.dates()
    | st.datetimes()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.binary() | st.integers(), inner)
    ),
)


@given(plain, st.sampled_from([3, 4, 5]))
def test_plain_data_is_read(value: Any, protocol: int) -> None:
    assert load(pickle.dumps(value, protocol)) == value


def test_a_request_is_read() -> None:
    spider = Spider()
    request = scrapy.Request(
        "https://shop.example/p/1",
        spider.product,
        headers={"Accept": "text/html"},
        cookies={"a": "b"},
        meta={
            "when": datetime(2024, 1, 2, tzinfo=UTC),
            "price": Decimal("1.10"),
            "set": {1, 2},
            "frozen": frozenset("ab"),
            "day": date(2024, 1, 2),
            "for": timedelta(days=1),
        },
        cb_kwargs={"page": 2},
        flags=["x"],
    )
    values = request.to_dict(spider=spider)
    assert load(pickle.dumps(values, protocol=-1)) == values


def hostile(path: Path) -> dict[str, bytes]:
    """Pickles that would make a file, fill the memory or blow the stack."""
    shell, code = f"touch {path}", f"open({str(path)!r}, 'w')"
    long = struct.pack("<Q", 2**62)
    return {
        "os.system": pickle.dumps(Calls(os.system, shell)),
        "eval": pickle.dumps(Calls(builtins.eval, code)),
        "exec in protocol 0": pickle.dumps(Calls(builtins.exec, code), 0),
        "getattr": pickle.dumps(Calls(getattr, "", "join")),
        "__import__": pickle.dumps(Calls(__import__, "antigravity")),
        "codecs": pickle.dumps(Calls(codecs.encode, "a", "rot13")),
        "partial": pickle.dumps(functools.partial(os.system, shell)),
        "a class of the user's": pickle.dumps(Calls(Spider)),
        "an attribute of what is allowed": b"\x80\x04\x8c\x08datetime\x8c\x0cdatetime.now\x93)R.",
        "a module by another": b"\x80\x04\x8c\x08datetime\x8c\x08sys.path\x93.",
        "INST": f"(S'{shell}'\nios\nsystem\n.".encode(),
        "OBJ": f"(cos\nsystem\nS'{shell}'\no.".encode(),
        "BUILD": b"\x80\x04cdatetime\ndate\n}b.",
        "NEWOBJ": b"\x80\x04cdatetime\ndate\n)\x81.",
        "EXT": b"\x80\x04\x82\x01.",
        "PERSID": b"Pname\n.",
        "BINPERSID": b"\x80\x04K\x01Q.",
        "out of band": b"\x80\x05\x97.",
        "calls text": b"\x80\x04\x8c\x01a)R.",
        "a memo of gigabytes": b"\x80\x04Nr\xff\xff\xff\xff.",
        "BINUNICODE8": b"\x80\x04\x8d" + long + b"a.",
        "BINBYTES8": b"\x80\x04\x8e" + long + b"a.",
        "LONG4": b"\x80\x04\x8b" + struct.pack("<i", 2**31 - 1) + b"a.",
        "LONG4, negative": b"\x80\x04\x8b" + struct.pack("<i", -5) + b"a.",
        "FRAME": b"\x80\x04\x95" + long + b"N.",
        "a long number in digits": b"L" + b"9" * 100_000 + b"L\n.",
        "repeats itself": pickle.dumps(laughing()),
        "a key that takes doubling time": doubling(b"}", b"Ns"),
        "keys that do": doubling(b"}(", b"Nu"),
        "a member that does": doubling(b"\x8f(", b"\x90"),
        "a frozen member that does": doubling(b"(", b"\x91"),
        "a set that is called for": doubling(b"cbuiltins\nset\n", b"\x85R"),
        "many such keys": many_keys(),
        "a key that blows the stack": b"\x80\x04})" + b"\x85" * 1_000_000 + b"Ns.",
        "contains itself": b"\x80\x04]\x94h\x00a.",
        "truncated": pickle.dumps({"url": "https://a.example/"})[:-5],
        "empty": b"",
        "only the end": b".",
        "nothing on the stack": b"\x80\x04\x85.",
        "more after it": b"\x80\x04N.cos\nsystem\n",
        "json": b'{"url": "https://a.example/"}',
        "noise": bytes(range(256)),
        "unhashable keys": b"\x80\x04}]Ns.",
    }


HARMLESS = {"more after it"}


@pytest.mark.parametrize("name", sorted(set(hostile(Path("x"))) - HARMLESS))
def test_anything_else_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "made"
    with pytest.raises(BadPickle):
        load(hostile(path)[name])
    assert not path.exists()


def test_what_follows_is_not_looked_at() -> None:
    assert load(hostile(Path("x"))["more after it"]) is None


def test_tuples_are_keys_and_members_as_ever() -> None:
    pair = (1, ("a", b"b"))
    value = {pair: {pair, (pair, pair)}, (2,): frozenset([pair]), "again": [pair] * 50}
    for protocol in (3, 4, 5):
        assert load(pickle.dumps(value, protocol)) == value


def test_depth_is_no_recursion_error() -> None:
    value = load(deep(100_000))
    for _ in range(100_000 - 1):
        (value,) = value


@given(st.binary())
def test_noise_is_refused_or_plain(data: bytes) -> None:
    try:
        load(data)
    except BadPickle:
        return


@given(plain, st.data())
def test_a_damaged_pickle_is_refused_or_plain(value: Any, data: st.DataObject) -> None:
    pickled = bytearray(pickle.dumps(value, 4))
    place = data.draw(st.integers(0, len(pickled) - 1))
    pickled[place] = data.draw(st.integers(0, 255))
    try:
        load(bytes(pickled))
    except BadPickle:
        return
