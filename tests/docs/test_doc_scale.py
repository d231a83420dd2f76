"""docs/scale.md has the tables that `python -m benchmarks.billion paper` prints, and the model and
the frontier agree on a small web."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.billion.model import course_of
from benchmarks.billion.paper import tables
from benchmarks.billion.simulation import simulate
from benchmarks.billion.trial import Clock, Trial
from benchmarks.billion.web import Web, hard_web_of

from shoal.frontier.sqlite.frontier import SqliteFrontier
from support.markdown import ROOT

PAGE = ROOT / "docs" / "scale.md"
_TABLE = re.compile(r"<!-- billion: (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)


def test_the_tables_are_those_of_the_model() -> None:
    on_page = dict(_TABLE.findall(PAGE.read_text("utf-8")))

    assert on_page == tables(), "see: python -m benchmarks.billion paper"


@pytest.mark.parametrize(
    "web",
    [
        hard_web_of(20_000),
        Web(pages=20_000, hosts=200, slots=400, hold_s=0.5),
        Web(pages=20_000, hosts=200, slots=10, hold_s=0.5),
    ],
    ids=["hard", "hosts are the limit", "the fleet is the limit"],
)
def test_the_model_agrees_with_what_happens_page_by_page(web: Web) -> None:
    model, simulated = course_of(web), simulate(web)

    assert simulated.seconds == pytest.approx(model.seconds, rel=0.05)
    assert simulated.longest_queue == pytest.approx(model.longest_queue, rel=0.05)


async def test_and_with_the_frontier(tmp_path: Path) -> None:
    web, clock = Web(pages=1_000, hosts=100, slots=20, hold_s=0.5, ask_every_s=0.05), Clock()
    frontier = SqliteFrontier(tmp_path / "frontier.db", clock)
    seen = await Trial(web, frontier, clock).run()
    await frontier.close()

    assert seen.seconds == pytest.approx(course_of(web).seconds, rel=0.05)
    assert seen.least_gap_s >= web.turn_s - 1e-5
