"""Random answers that nobody would think of: cut, mangled, mixed up.

Each is marked, in its headers and throughout its body, with the request that it belongs to.
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

NOBODY = -1
"""The request number of an answer without a request."""
FIRST_MARK = 10**17
"""The base of all marks: they are so long that mangling never turns one into another."""

_marks = re.compile(rb"<<(\d+)>>").findall


class Sent(NamedTuple):
    """What a server sends for one request."""

    wire: bytes
    body: bytes
    is_sound: bool
    ends_with_connection: bool


def mark_of(number: int) -> int:
    """The mark of this request's answer."""
    return FIRST_MARK + number * 1234567891


def body_for(rng: random.Random, number: int) -> bytes:
    """A body that repeats the mark of its request."""
    return b"".join(
        b"<<%d>>" % mark_of(number) + rng.randbytes(rng.choice((0, 1, 30)))
        for _ in range(rng.choice((0, 1, 3, 40)))
    )


ENCODINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"": lambda body: body,
    b"identity": lambda body: body,
    b"gzip": lambda body: zlib.compress(body, wbits=31),
    b"deflate": lambda body: zlib.compress(body),
    b"deflate, gzip": lambda body: zlib.compress(zlib.compress(body), wbits=31),
}


def chunked(rng: random.Random, data: bytes) -> bytes:
    """The data as random chunks, with everything that the format allows around them."""
    wire = b""
    while data:
        size = rng.randint(1, min(len(data), rng.choice((1, 7, 500))))
        extension = rng.choice((b"", b"", b";a=b", b" "))
        wire += b"%x%s\r\n%s\r\n" % (size, extension, data[:size])
        data = data[size:]
    trailers = b"".join(b"X-Trailer: %d\r\n" % n for n in range(rng.choice((0, 0, 3))))
    return wire + b"0\r\n" + trailers + b"\r\n"


def sound(rng: random.Random, number: int) -> Sent:
    """A correct answer."""
    body = body_for(rng, number)
    encoding = rng.choice([*ENCODINGS])
    packed = ENCODINGS[encoding](body) if body else b""
    framing = rng.choice(("length", "chunks", "close"))
    status = rng.choice((200, 200, 201, 203, 404))
    lines = [b"HTTP/1.1 %d Whatever" % status, b"X-Mark: <<%d>>" % mark_of(number)]
    lines += [b"Content-Encoding: " + encoding] if encoding else []
    lines += [b"X-%d: %s" % (n, b"v" * rng.randint(0, 50)) for n in range(rng.randint(0, 8))]
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(packed))
    elif framing == "chunks":
        lines.append(b"Transfer-Encoding: chunked")
        packed = chunked(rng, packed)
    rng.shuffle(rest := lines[1:])
    head = b"\r\n".join([lines[0], *rest]) + b"\r\n\r\n"
    hints = b"HTTP/1.1 103 Hint\r\nLink: </a>\r\n\r\n" * rng.choice((0, 0, 0, 2))
    return Sent(hints + head + packed, body, True, framing == "close")


def mangled(rng: random.Random, wire: bytes) -> bytes:
    """The bytes with parts changed, lost or repeated."""
    for _ in range(rng.choice((1, 1, 2, 10))):
        at, length = rng.randrange(len(wire) + 1), rng.choice((1, 1, 2, 20))
        middle = rng.choice(
            (
                b"",
                rng.randbytes(length),
                bytes([rng.choice(b"0123456789abcdefHTP/:;,\r\n \t\0\xff-")]),
                wire[at : at + length] * 2,
            )
        )
        wire = wire[:at] + middle + wire[at + rng.choice((0, length)) :]
    return wire


def spoilt(rng: random.Random, number: int) -> Sent:
    """An incorrect answer."""
    good = sound(rng, number)
    # Without a length, everything that follows belongs to the body.
    forged = b"" if good.ends_with_connection else sound(rng, NOBODY).wire
    wire = rng.choice(
        (
            lambda: good.wire[: rng.randrange(len(good.wire) + 1)],
            lambda: mangled(rng, good.wire),
            lambda: mangled(rng, good.wire),
            lambda: good.wire + forged,
            lambda: good.wire + forged[: rng.randrange(len(forged) + 1)],
            lambda: good.wire + rng.randbytes(20),
            lambda: rng.randbytes(rng.randrange(500)),
        )
    )()
    return good._replace(wire=wire, is_sound=False)


def answer_for(rng: random.Random, number: int) -> Sent:
    """An answer, correct or not."""
    return (sound if rng.random() < 0.5 else spoilt)(rng, number)


def pieces_of(rng: random.Random, wire: bytes) -> list[bytes]:
    """The bytes in random pieces, as they may arrive."""
    pieces, longest = [], rng.choice((1, 10, 200, 10_000))
    while wire:
        size = rng.randint(1, longest)
        pieces.append(wire[:size])
        wire = wire[size:]
    return pieces


def strangers_in(
    headers: Mapping[str, str], body: bytes, number: int, asked: Iterable[int]
) -> list[int]:
    """The other requests whose marks occur in an answer. There must be none."""
    marks = {int(mark) for mark in (*_marks(body), *_marks(str(headers).encode()))}
    return [other for other in (*asked, NOBODY) if other != number and mark_of(other) in marks]
