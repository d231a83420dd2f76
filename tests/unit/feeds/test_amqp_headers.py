"""Headers of rejected messages: strangers have written them."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.feeds.amqp import HEADERS_KEPT, headers_to_keep


@pytest.mark.parametrize("headers", [{}, {"task": "shoal.seed", "retries": 0, "eta": None}])
def test_usual_ones_are_kept(headers: dict[str, Any]) -> None:
    assert headers_to_keep(headers) == headers


@pytest.mark.parametrize(
    "headers",
    [{"trace": b"\xff\xfe"}, {"nested": [{"trace": b"\xff"}]}, {"trace": "x" * HEADERS_KEPT}],
    ids=["text that is not UTF-8", "in a list", "too much"],
)
def test_those_that_cannot_be_sent_again_are_not(headers: dict[str, Any]) -> None:
    assert headers_to_keep(headers) == {}
