"""Reads bodies that may be hostile: decompresses them as they arrive, and stops at the limit.

However much a few bytes would decompress to, memory never holds more than the limit.
"""

from __future__ import annotations

import zlib

from shoal.errors import BadAnswer, TooLarge

MAX_LAYERS = 2
"""Some servers compress twice by mistake; more layers are an attack."""

MAX_GZIP_MEMBERS = 1000
"""Gzip data may be many files in a row, and each of them costs time, however small it is."""

_NAMES = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate"}
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
_ZLIB_WINDOW = 15
_RAW_WINDOW = -15


class Body:
    """Collects a body piece by piece, and decompresses it."""

    def __init__(self, content_encoding: str, limit: int) -> None:
        """Raises FetchError if the encoding is not supported (and was not asked for)."""
        self._limit = limit
        self._received = 0
        self._inflaters = [Inflater(name, limit) for name in _layers(content_encoding)]
        self._plain = bytearray()  # Many small pieces would take many times more memory in a list.

    def feed(self, data: bytes) -> None:
        """Add a piece as it came over the wire. Raises TooLarge, and FetchError if corrupt."""
        self._received += len(data)
        if self._received > self._limit:
            raise too_large(self._limit)
        for inflater in self._inflaters:
            data = inflater.feed(data)
        self._plain += data

    def finish(self) -> bytes:
        """The whole body. Raises FetchError if compressed data ended too early."""
        for inflater in self._inflaters:
            inflater.finish()
        return bytes(self._plain)


class Inflater:
    """Undoes one layer of gzip or deflate."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._left = limit
        self._held = b""
        """The first bytes of a stream, too few to tell its format."""
        self._stream: zlib._Decompress | None = None
        self._streams_ended = 0
        self._rest_is_padding = False

    def feed(self, data: bytes) -> bytes:
        """Decompress one piece."""
        data, self._held = self._held + data, b""
        plain = []
        while data and not self._rest_is_padding:
            if self._stream is None:
                self._stream = self._recognise(data)
            if self._stream is None:
                break
            plain.append(self._inflate(self._stream, data))
            data = self._stream.unused_data
            if self._stream.eof:
                self._stream = None
                self._streams_ended += 1
        return b"".join(plain)

    def finish(self) -> None:
        """Check that the data is complete. Raises FetchError if it ended too early."""
        if self._stream is not None or (self._held and not self._streams_ended):
            raise BadAnswer(f"{self._name}: the compressed data ends too early")

    def _recognise(self, data: bytes) -> zlib._Decompress | None:
        """A decoder for the stream that starts here.

        None if no stream starts here, or if too little of it has arrived to tell.
        """
        if len(data) < len(_GZIP_MAGIC):
            self._held = data
            return None
        if self._streams_ended and not (self._name == "gzip" and data.startswith(_GZIP_MAGIC)):
            # Some servers pad the data with zeros. Browsers accept that.
            self._rest_is_padding = True
            return None
        if self._streams_ended == MAX_GZIP_MEMBERS:
            raise BadAnswer(f"gzip: more than {MAX_GZIP_MEMBERS} files in one body")
        return zlib.decompressobj(self._window(data))

    def _window(self, data: bytes) -> int:
        if self._name == "gzip":
            return _GZIP_WINDOW
        # "deflate" means zlib's format (RFC 1950), but some servers send the bare data inside it.
        is_zlib = data[0] & 0x0F == zlib.DEFLATED and (data[0] << 8 | data[1]) % 31 == 0
        return _ZLIB_WINDOW if is_zlib else _RAW_WINDOW

    def _inflate(self, stream: zlib._Decompress, data: bytes) -> bytes:
        try:
            # One byte over the limit is enough to detect it; zero would mean "no limit" to zlib.
            plain = stream.decompress(data, self._left + 1)
        except zlib.error:
            raise BadAnswer(f"{self._name}: the compressed data is corrupt") from None
        self._left -= len(plain)
        if self._left < 0:
            raise too_large(self._limit, "decompressed ")
        return plain


def too_large(limit: int, kind: str = "") -> TooLarge:
    """The error for a body over the limit."""
    return TooLarge(f"{kind}body larger than {limit} bytes (max_body_bytes)")


def _layers(content_encoding: str) -> list[str]:
    """The names of the compressions to undo, outermost first."""
    given = [name.strip().lower() for name in content_encoding.split(",")]
    names = [name for name in reversed(given) if name not in ("", "identity")]
    if len(names) > MAX_LAYERS or any(name not in _NAMES for name in names):
        error = BadAnswer(f"cannot read Content-Encoding: {content_encoding[:60]!a}")
        error.retryable = False
        raise error
    return [_NAMES[name] for name in names]
