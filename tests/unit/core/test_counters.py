"""Counters: declared once, and found in outcomes and statistics."""

from __future__ import annotations

from shoal.core.counters import COUNTERS, PAGE_COUNTERS, Counts, page_counts
from shoal.frontier.values import Outcome, Stats


def test_outcomes_say_what_pages_count_and_statistics_have_all() -> None:
    assert set(PAGE_COUNTERS) < set(COUNTERS) < set(Stats.__struct_fields__)
    assert set(PAGE_COUNTERS) < set(Outcome.__struct_fields__)


def test_counts_of_a_page_are_in_their_order() -> None:
    counts = dict(zip(PAGE_COUNTERS, range(1, 10), strict=True))
    assert page_counts(Counts(**counts)) == tuple(counts.values())
