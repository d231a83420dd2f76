"""What result stores share: the statements' common parts, and the columns of the page log."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.results_suite import some_page
from shoal.core.urls import FINGERPRINT_BYTES, fingerprint_of, number_of
from shoal.results.postgres import rows as postgres_rows
from shoal.results.sqlite import rows as sqlite_rows
from shoal.results.storable import PAGE_FIELDS, load_statements

FILLED_IN_LATER = {"{rows}", "{page_arrays}", "{file_arrays}"}


@pytest.mark.parametrize("package", ["shoal.results.sqlite", "shoal.results.postgres"])
def test_what_statements_share_is_filled_in(package: str) -> None:
    statements = load_statements(package)

    marks = {mark for text in statements.values() for mark in re.findall(r"\{\w+\}", text)}
    assert marks <= FILLED_IN_LATER
    assert ", ".join(PAGE_FIELDS) in statements["pages_of"]


def test_a_page_is_the_same_after_it_was_a_row() -> None:
    page = some_page()

    ((crawl, *row),) = sqlite_rows.page_rows(7, [page])
    assert crawl == 7
    assert sqlite_rows.page_of(tuple(row)) == page


def test_every_column_of_the_page_log_has_a_parameter_with_its_type() -> None:
    arrays = postgres_rows.page_arrays(first=22).split(", ")

    assert len(arrays) == len(PAGE_FIELDS) == len(postgres_rows.page_columns([some_page()]))
    assert dict(zip(PAGE_FIELDS, arrays, strict=True)).items() >= {
        ("fingerprint", "$22::bigint[]"),
        ("url", "$23::text[]"),
        ("started_at", "$26::timestamptz[]"),
        ("duration_s", "$27::float8[]"),
        ("status", "$29::bigint[]"),
        ("digest", "$35::bytea[]"),
    }


def test_no_pages_are_empty_columns() -> None:
    assert postgres_rows.page_columns([]) == [[] for _ in PAGE_FIELDS]


@given(st.binary(min_size=FINGERPRINT_BYTES, max_size=FINGERPRINT_BYTES))
def test_a_fingerprint_is_a_signed_number_of_64_bits(fingerprint: bytes) -> None:
    number = number_of(fingerprint)

    assert -(2**63) <= number < 2**63
    assert fingerprint_of(number) == fingerprint
