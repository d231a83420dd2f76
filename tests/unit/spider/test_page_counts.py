"""Numbers in the words of shops."""

from __future__ import annotations

import pytest

from shoal.spider.page_counts import largest_number, page_size, range_of, total_of


@pytest.mark.parametrize(
    ("text", "total", "shown"),
    [
        ("1-20 of 4,813", 4813, (1, 20)),
        ("4.813 Produkte", 4813, None),
        ("Showing 21–40 of 4 813", 4813, (21, 40)),
        ("Showing 4,801 to 4,813 of 4,813 results", 4813, (4801, 4813)),
        ("1 bis 24 von 1.234.567 Artikeln", 1234567, (1, 24)),
        ("1 – 48 of over 1,00,000 results", 100000, (1, 48)),
        ("4'813 articles, 4\u202f812 en stock", 4813, None),
        ("Товары 1—30 из 4\u00a0813", 4813, (1, 30)),
        ("共4813件", 4813, None),
        ("Page 2 of 241 (4,813 products)", 4813, None),
        ("20 of 4813", 4813, None),
        ("rated 4.8 by 120 people", 120, None),
        ("١٢٣ منتج", 123, None),
        ("none", None, None),
        ("9" * 10_000, 10**18 - 1, None),
        ("1,111" * 10_000, 1111, None),
    ],
)
def test_totals_and_ranges(text: str, total: int | None, shown: tuple[int, int] | None) -> None:
    assert (total_of(text), range_of(text)) == (total, shown)


def test_the_last_page_is_short_and_says_so_by_what_comes_before_it() -> None:
    assert page_size("1-20 of 4,813", 0) == 20
    assert page_size("4,801-4,813 of 4,813", 240) == 20
    assert page_size("1-20 of 4,813", 7) == 20  # It does not tell the truth.


def test_numbers_of_pages_are_not_joined_by_spaces() -> None:
    assert largest_number("« 1 … 398 399 400 »") == 400
    assert largest_number("Page 3 of 4,813") == 4813
    assert largest_number("next") is None
