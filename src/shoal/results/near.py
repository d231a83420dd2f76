"""Finds near duplicates by simhash: 64 bits that represent a page's text. Similar pages differ in
few of them.

Each pair of neighbouring words is hashed to 64 bits. Each bit of the simhash is the value that most
of these hashes have there. Changing one word in a page of three hundred flips about two bits; pages
with nothing in common differ in about 32.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections import defaultdict
from hashlib import blake2b
from operator import xor

from shoal.core.urls import FINGERPRINT_BYTES
from shoal.results.port import NearPage

BITS = 64
NEAR_BITS = 3
"""Pages whose simhashes differ in at most this many bits are nearly the same."""
LEAST_WORDS = 8
"""A text with fewer words is too short to be compared."""
MOST_WORDS = 50_000
"""Later words do not count: a hostile page might otherwise take seconds to hash."""
MOST_IN_BUCKET = 1_000
"""The maximum number of pages in each band that a new page is compared with."""

_BYTES = BITS // 8
_ALL_BITS = (1 << BITS) - 1
_BANDS = range(0, BITS, BITS // (NEAR_BITS + 1))
_BAND_BITS = 0xFFFF
_SPREAD = 0x9E3779B97F4A7C15
_CACHED_WORDS = 30_000
_CACHED_CHARACTERS = 40
# Scripts without spaces between words, where every character counts as a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class _WordHashes(dict[str, int]):
    """A cache of word hashes. Most words of a page were seen before."""

    def __init__(self, role: bytes) -> None:
        super().__init__()
        self._role = role

    def __missing__(self, word: str) -> int:
        content = word.encode("utf-8", "surrogatepass")
        digest = blake2b(content, digest_size=_BYTES, person=self._role).digest()
        number = int.from_bytes(digest)
        if len(word) <= _CACHED_CHARACTERS:
            if len(self) >= _CACHED_WORDS:
                self.clear()  # Cheaper than tracking the least recently used words.
            self[word] = number
        return number


# The hash of a pair is the XOR of two word hashes, so it costs only two look-ups. The second word
# of a pair is hashed in another way, so that order matters.
_FIRST = _WordHashes(b"first")
_SECOND = _WordHashes(b"second")


def simhash(text: str) -> int | None:
    """The simhash of a text, as a signed 64-bit number. None if there are too few words."""
    words = _words(text)
    if len(words) < LEAST_WORDS:
        return None
    firsts = map(_FIRST.__getitem__, words)
    seconds = map(_SECOND.__getitem__, words[1:])
    # A pair counts once, however often it occurs: the text of a page matters more than its menus.
    return _majority(array("Q", set(map(xor, firsts, seconds))))


def distance(one: int, other: int) -> int:
    """The number of bits in which two simhashes differ."""
    return ((one ^ other) & _ALL_BITS).bit_count()


def _words(text: str) -> list[str]:
    if not text.isascii():
        text = _UNSPACED.sub(r" \g<0> ", text)
    return text.lower().split(None, MOST_WORDS)[:MOST_WORDS]


def _majority(hashes: array[int]) -> int:
    """The number whose bits are set where most of the hashes have them set.

    Counts each bit for all hashes at once: takes every eighth byte as one long number, and masks
    it to one bit in each byte.
    """
    if sys.byteorder == "big":
        hashes.byteswap()  # All machines must compute the same simhash.
    content = hashes.tobytes()
    one_each = int.from_bytes(b"\1" * len(hashes))
    half = len(hashes) / 2
    result = 0
    for place in range(_BYTES):
        column = int.from_bytes(content[place::_BYTES])
        for bit in range(8):
            if (column >> bit & one_each).bit_count() > half:
                result |= 1 << 8 * place + bit
    return result - (1 << BITS) if result >> BITS - 1 else result


class NearPages:
    """The pages seen so far. Finds the one that a new page is nearly the same as.

    Groups are chained: a page near any page of a group is reported as like the first page of that
    group, however far it is from that one. If a page comes more than once, only the first counts.

    Two simhashes that differ in at most three bits agree in one of four bands of 16 bits, so only
    pages that share a band are compared. Where a great many pages share one (a template with little
    text of its own), a new page is only compared with the first thousand in each band, and with
    those of the same simhash. Some near pages are missed then, but the total time stays
    proportional to the number of pages.

    Everything is kept in arrays of numbers: a million pages take about 120 MB, each further million
    60 MB. The time to compare one page grows with their number, up to the limit of each band.
    """

    def __init__(self) -> None:
        self.count = 0
        self._seen: dict[int, array[int]] = defaultdict(lambda: array("Q"))
        # Of each indexed page: its simhash, its number, the position of its group's first page.
        self._values = array("Q")
        self._pages = array("Q")
        self._firsts = array("I")
        # Positions in these arrays by the whole simhash, and by each of its bands.
        self._same: dict[int, array[int]] = defaultdict(lambda: array("I"))
        self._bands: list[dict[int, array[int]]] = [defaultdict(lambda: array("I")) for _ in _BANDS]

    def add(self, fingerprint: bytes, simhash: int) -> NearPage | None:
        """Add the next page. Returns the page that it is nearly the same as, if there is one."""
        page = int.from_bytes(fingerprint)
        if self._was_seen(page):
            return None
        value = simhash & _ALL_BITS
        found = self._find_same(value)
        if found is None:
            found = self._find_near(value)
            self._index(page, value, found)
        if found is None:
            return None
        first = self._firsts[found]
        like = self._pages[first].to_bytes(FINGERPRINT_BYTES)
        return NearPage(fingerprint, like, distance(value, self._values[first]))

    def _was_seen(self, page: int) -> bool:
        alike = self._seen[page & _BAND_BITS]
        if page in alike:
            return True
        alike.append(page)
        self.count += 1
        return False

    def _find_same(self, value: int) -> int | None:
        values = self._values
        return next((at for at in self._same[_spread(value)] if values[at] == value), None)

    def _find_near(self, value: int) -> int | None:
        values = self._values
        for shift, band in zip(_BANDS, self._bands, strict=True):
            for at in band[value >> shift & _BAND_BITS]:
                if (value ^ values[at]).bit_count() <= NEAR_BITS:
                    return at
        return None

    def _index(self, page: int, value: int, found: int | None) -> None:
        at = len(self._values)
        self._values.append(value)
        self._pages.append(page)
        self._firsts.append(at if found is None else self._firsts[found])
        self._same[_spread(value)].append(at)
        for shift, band in zip(_BANDS, self._bands, strict=True):
            bucket = band[value >> shift & _BAND_BITS]
            if len(bucket) < MOST_IN_BUCKET:
                bucket.append(at)


def _spread(value: int) -> int:
    """Hash a simhash to 16 bits that depend on all of its bits, as pages of one template share
    many of them."""
    return value * _SPREAD >> BITS - 16 & _BAND_BITS
