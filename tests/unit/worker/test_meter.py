"""What a worker counts of its own work."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.core.histograms import BOUNDS_S, Histogram
from shoal.core.task import Task
from shoal.frontier.values import Lease, Outcome, Pulse, Verdict
from shoal.worker.meter import Meter
from shoal.worker.report import Report, give_back


def report(status: int | None, parsing_s: float = 0.0, **fields: Any) -> Report:
    lease = Lease(b"12345678", "token", Task(url="http://a.example/"))
    outcome = Outcome(lease=lease, verdict=Verdict.DONE, **fields)
    return Report(outcome, status=status, parsing_s=parsing_s)


class TestNote:
    def test_an_answer(self) -> None:
        meter = Meter(4)
        meter.note(report(200, 0.25, latency_s=0.02, body_bytes=100, wire_bytes=40))
        meter.note(report(503, latency_s=1.5, body_bytes=1, wire_bytes=2))
        assert meter.responses == {"2xx": 1, "5xx": 1}
        assert (meter.body_bytes, meter.wire_bytes, meter.parsing_s) == (101, 42, 0.25)
        assert (meter.fetches.count, meter.fetches.total_s) == (2, 1.52)

    def test_what_got_no_answer_was_still_on_the_wire(self) -> None:
        meter = Meter(4)
        meter.note(report(None, wire_bytes=7))
        meter.note(give_back(report(None).outcome.lease, sent=False))
        assert (meter.wire_bytes, meter.responses, meter.fetches.count) == (7, {}, 0)

    @pytest.mark.parametrize("status", [100, 999, 1000, 65535])
    def test_a_made_up_status_is_counted_somewhere(self, status: int) -> None:
        meter = Meter(4)
        meter.note(report(status))
        assert sum(meter.responses.values()) == 1


class TestHistogram:
    @pytest.mark.parametrize(
        ("seconds", "place"),
        [(0.0, 0), (0.005, 0), (0.0051, 1), (60.0, len(BOUNDS_S) - 1), (1e9, len(BOUNDS_S))],
    )
    def test_bounds_are_inclusive(self, seconds: float, place: int) -> None:
        histogram = Histogram()
        histogram.note(seconds)
        assert histogram.counts[place] == histogram.count == 1
        assert len(histogram.counts) == len(BOUNDS_S) + 1


def test_the_pulse_of_an_earlier_version_can_be_read() -> None:
    told = b'{"worker": "w", "host": "h", "pid": 1, "version": "0", "pages": 3}'
    pulse = msgspec.json.decode(told, type=Pulse)
    assert (pulse.pages, pulse.backlog, pulse.fetches.count, pulse.responses) == (3, 0, 0, {})
