"""What docs/security.md claims is shown by tests that exist."""

from __future__ import annotations

import re

import pytest

from support.markdown import ROOT, spans

NAMED = sorted({span for span in spans(ROOT / "docs/security.md") if span.startswith("tests/")})


def test_claims_name_tests() -> None:
    assert len(NAMED) > 30


@pytest.mark.parametrize("named", NAMED)
def test_the_test_exists(named: str) -> None:
    path, _, name = named.partition("::")
    assert re.search(rf"^ *(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_every_row_of_a_table_names_one() -> None:
    page = (ROOT / "docs/security.md").read_text("utf-8")
    claims = page.partition("## Secrets")[0]
    rows = [line for line in claims.splitlines() if line.startswith("| ")]
    heads = ("| it cannot |", "| they cannot |")
    assert [row for row in rows if not row.startswith(heads) and "::test_" not in row] == []
