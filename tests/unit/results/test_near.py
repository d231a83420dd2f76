"""Simhash: stable, close for texts that are alike, and near pages are found as by comparing all."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.results import near
from shoal.results.near import LEAST_WORDS, MOST_WORDS, NEAR_BITS, NearPages, distance
from shoal.results.port import NearPage
from shoal.spider import markup

TEXT = " ".join(f"word{n}" for n in range(400))

signed_64 = st.integers(-(2**63), 2**63 - 1)


def words(*numbers: int) -> str:
    return " ".join(f"word{n}" for n in numbers)


def hashed(text: str) -> int:
    value = near.simhash(text)
    assert value is not None
    return value


# The hash


def test_it_is_a_known_number() -> None:
    """Workers of all versions must agree: a change of this number is a change of stored data."""
    assert hashed("the quick brown fox jumps over the lazy dog") == 7575864165505453013


def test_another_process_agrees() -> None:
    """Python's own hash of a text is another one in each process."""
    code = f"from shoal.results.near import simhash; print(simhash({TEXT!r}))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert int(said) == hashed(TEXT)


@given(st.text(max_size=400))
def test_it_fits_64_bits_and_repeats(text: str) -> None:
    value = near.simhash(text)
    assert value == near.simhash(text)
    assert value is None or -(2**63) <= value < 2**63


def test_too_few_words_have_none() -> None:
    assert near.simhash(words(*range(LEAST_WORDS - 1))) is None
    assert near.simhash(words(*range(LEAST_WORDS))) is not None
    assert near.simhash("") is None


def test_case_and_white_space_do_not_count() -> None:
    assert hashed(TEXT.upper().replace(" ", "\n\t ")) == hashed(TEXT)


def test_the_order_of_words_counts() -> None:
    assert distance(hashed(words(*range(100))), hashed(words(*reversed(range(100))))) > 10


def test_small_changes_turn_few_bits() -> None:
    """One word of 400 turns about two, on average; other texts are far away."""
    texts = [words(*range(n, n + 400)) for n in range(1_000, 101_000, 1_000)]
    changed = [text.replace(" ", " other ", 1) for text in texts]
    pairs = zip(map(hashed, texts), map(hashed, changed), strict=True)
    distances = [distance(before, after) for before, after in pairs]
    assert sum(distances) / len(distances) < NEAR_BITS
    assert max(distances) < 10
    assert min(distance(hashed(TEXT), hashed(text)) for text in texts) > 10


def test_repeated_words_weigh_once() -> None:
    assert distance(hashed(f"{TEXT} {'buy now ' * 500}"), hashed(f"{TEXT} buy now buy")) == 0


def test_a_script_without_spaces_has_words_too() -> None:
    text = "".join(chr(0x4E00 + n) for n in range(300))
    one_changed = text[:150] + "火" + text[151:]
    assert 0 < distance(hashed(text), hashed(one_changed)) < 10


def test_lone_surrogates_are_no_trouble() -> None:
    assert hashed(f"{TEXT} \ud800") is not None


def test_the_end_of_a_huge_text_does_not_count() -> None:
    huge = words(*range(MOST_WORDS))
    assert hashed(f"{huge} and more") == hashed(huge)


def test_what_is_kept_of_words_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near, "_CACHED_WORDS", 50)
    cache = near._WordHashes(b"test")
    hashes = [cache[f"word{n}"] for n in range(200)]
    assert len(cache) <= 50
    assert [cache[f"word{n}"] for n in range(200)] == hashes
    assert cache["x" * 1_000_000] == cache["x" * 1_000_000]
    assert max(map(len, cache)) < 100


@given(signed_64, signed_64)
def test_distance_is_what_differs(one: int, other: int) -> None:
    bits = [f"{number & 2**64 - 1:064b}" for number in (one, other)]
    assert distance(one, other) == sum(a != b for a, b in zip(*bits, strict=True))


# The text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<title>A</title><p>b<b>c</b>d</p>", "A b c d"),
        ("<p>a</p><script>b</script><p>c</p><style>d</style>e", "a c e"),
        ("<p>x</p><script src=x></script><script>x</script>y", "x y"),
        ("<p>x<script>x</script>y<script>y</script>", "x y"),
        ("<svg><style>a<g>c</g></style></svg>z", "z"),
        ("<!-- a --><template>b</template>c", "c"),
        ("plain", "plain"),
    ],
)
def test_visible_text(html: str, text: str) -> None:
    tree = markup.tree(html.encode(), "text/html")
    before = tree[0].html
    assert sorted(markup.visible_text(tree).split()) == sorted(text.split())
    assert tree[0].html == before


def test_nothing_has_no_text() -> None:
    assert markup.visible_text(markup.tree(b"", "text/html")) == ""


@pytest.mark.parametrize("part", ["<script src=x></script>", "<svg><style><style>a</style>", "<b>"])
def test_a_page_made_to_take_long_does_not(part: str) -> None:
    """It is over at once, or it would take hours."""
    markup.visible_text(markup.tree(part.encode() * 2_400 + b"x" * 4_000_000, "text/html"))


# Near pages


def near_among(values: Sequence[int]) -> dict[int, NearPage]:
    """What is near among pages that are numbered from 0."""
    pages = NearPages()
    found = {n: pages.add(n.to_bytes(8), value) for n, value in enumerate(values)}
    assert pages.count == len(values)
    return {number: page for number, page in found.items() if page is not None}


@st.composite
def crowded(draw: st.DrawFn) -> list[int]:
    """Simhashes of which many are close to each other."""
    centres = draw(st.lists(signed_64, min_size=1, max_size=3))
    flips = st.lists(st.integers(0, 63), max_size=6)
    values = draw(st.lists(st.tuples(st.sampled_from(centres), flips), max_size=40))
    return [_flipped(centre, bits) for centre, bits in values]


def _flipped(value: int, bits: Sequence[int]) -> int:
    for bit in bits:
        value ^= -(2**63) if bit == 63 else 1 << bit
    return value


@given(crowded())
def test_near_pages_are_those_that_comparing_all_finds(values: list[int]) -> None:
    found = near_among(values)
    first_of_group: dict[int, int] = {}
    for number, value in enumerate(values):
        earlier = [n for n in range(number) if distance(value, values[n]) <= NEAR_BITS]
        assert (number in found) == bool(earlier)
        first_of_group[number] = number
        assert number not in found or found[number].fingerprint == number.to_bytes(8)
        if earlier:
            first = int.from_bytes(found[number].like)
            assert first in {first_of_group[n] for n in earlier}
            assert found[number].distance == distance(value, values[first])
            first_of_group[number] = first


def test_a_chain_is_one_group() -> None:
    chain = [0, 0b111, 0b111111, 0b111111111]
    found = near_among(chain)
    assert [(int.from_bytes(p.like), p.distance) for p in found.values()] == [
        (0, 3),
        (0, 6),
        (0, 9),
    ]


def test_a_page_is_not_like_itself() -> None:
    pages = NearPages()
    a, b = b"a" * 8, b"b" * 8
    found = [pages.add(*page) for page in [(a, 1), (a, 1), (a, 2), (b, 1), (b, 1)]]
    assert found == [None, None, None, NearPage(b, a, 0), None]
    assert pages.count == 2


def test_pages_that_are_all_the_same_are_no_trouble() -> None:
    """Comparing each with each would take days."""
    pages = NearPages()
    found = [pages.add(n.to_bytes(8), -7) for n in range(200_000)]
    assert found[0] is None
    assert all(page is not None and page.like == bytes(8) for page in found[1:])


def test_pages_that_share_a_band_are_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """A band that is full is not searched further, but the same simhash is always found."""
    monkeypatch.setattr(near, "MOST_IN_BUCKET", 20)
    choice = random.Random(1)
    pages = NearPages()
    values = [choice.getrandbits(48) << 16 for _ in range(2_000)]
    for number, value in enumerate(values):
        pages.add(number.to_bytes(8), value)
    again = [pages.add((5_000 + n).to_bytes(8), value) for n, value in enumerate(values)]
    assert all(page is not None and page.distance == 0 for page in again)
    assert max(len(bucket) for bucket in pages._bands[0].values()) == 20
