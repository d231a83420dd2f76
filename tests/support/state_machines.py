"""Test cases of state machines, scaled to the profile of Hypothesis."""

from __future__ import annotations

import os
from typing import Any
from unittest import TestCase

from hypothesis import Phase, settings
from hypothesis.stateful import RuleBasedStateMachine

IS_CI = os.environ.get("CI") == "true"
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)


def lives(
    machine: type[RuleBasedStateMachine], percent: int, *, steps: int, is_slow: bool = False
) -> type[TestCase]:
    """The test case of a state machine, with `percent` of the examples of other property tests.

    `is_slow` is for machines whose examples take about a second, because a server is involved. A
    failing example is then reported as it was found. Hypothesis would shrink it for up to five
    minutes, which is the limit of a test: the test would be ended before it reports anything.
    Hypothesis keeps the example for the next run. In CI, which keeps nothing, slow examples are the
    same every time; elsewhere they are new ones.
    """
    case: Any = machine.TestCase
    number = max(settings().max_examples * percent // 100, 1)
    phases = WITHOUT_SHRINKING if is_slow else settings().phases
    case.settings = settings(
        max_examples=number,
        stateful_step_count=steps,
        phases=phases,
        derandomize=is_slow and IS_CI,
    )
    found: type[TestCase] = case
    return found
