"""Lines over two axes, as SVG."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from shoal.core.charts import FromZero, Line, Logarithmic, lines, time_unit

SVG = "{http://www.w3.org/2000/svg}"


def texts_of(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_chart_has_its_words_its_lines_and_its_dots() -> None:
    series = [
        Line("<one> & another", [(0, 0), (10, 100)]),
        Line("dots", [(1, 5), (2, 50)], has_dots=True),
        Line("limit", [(0, 20), (10, 20)], is_dashed=True),
    ]
    drawn = lines("Pages", series, "hours", "pages done", "a note")
    texts = texts_of(drawn)
    assert {"Pages", "a note", "hours", "pages done", "<one> & another"} <= set(texts)
    assert {"0", "2", "20", "100"} <= set(texts)
    assert drawn.count("<circle") == 2
    assert drawn.count("stroke-dasharray") == 1
    # From the left end of the axis below to the right end of the one above.
    assert 'd="M70.0 338.0L720.0 78.0"' in drawn


@pytest.mark.parametrize("points", [[(0.0, 0.0)], [(5.0, 0.0)], [(0.0, 0.3), (1.0, 0.001)]])
def test_a_chart_of_next_to_nothing(points: list[tuple[float, float]]) -> None:
    assert texts_of(lines("little", [Line("line", points)], "x"))


def test_where_values_are_on_an_axis() -> None:
    assert [FromZero(24).at(value) for value in (0, 12, 24)] == [0, 0.5, 1]
    assert [shown for _, shown in FromZero(24).ticks()] == ["0", "5", "10", "15", "20"]
    assert [shown for _, shown in FromZero(3, least_step=1).ticks()] == ["0", "1", "2", "3"]
    decades = Logarithmic([10_000, 1_000_000, 5_000_000, 10_000])
    assert decades.at(10_000) == 0
    assert decades.at(5_000_000) == pytest.approx(1)
    assert [shown for _, shown in decades.ticks()] == ["10 thousand", "1 million", "5 million"]


@pytest.mark.parametrize(
    ("longest_s", "unit"),
    [(0, "seconds"), (119, "seconds"), (120, "minutes"), (7_200, "hours"), (1e7, "days")],
)
def test_times_have_a_unit_in_which_they_are_easy_to_read(longest_s: float, unit: str) -> None:
    assert time_unit(longest_s)[1] == unit
