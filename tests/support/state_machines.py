"""Random lives: the test case of a state machine, as long as the profile of Hypothesis wants it."""

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
    """So many lives per hundred examples that other property tests have, each of so many steps.

    Where a life takes about a second, because a server lives it too, one that fails is told as it
    was found. Hypothesis looks for a shorter one for up to five minutes, which is as long as a test
    may take: it would be ended before it tells anything. It keeps the life for the next run. In CI,
    which keeps nothing, these lives are the same each time; elsewhere they are new ones.
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
