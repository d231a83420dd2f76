"""Random lives: the test case of a state machine, as long as the profile of Hypothesis wants it."""

from __future__ import annotations

from typing import Any
from unittest import TestCase

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine


def lives(
    machine: type[RuleBasedStateMachine], percent: int, *, steps: int, are_the_same: bool = False
) -> type[TestCase]:
    """So many lives per hundred examples that other property tests have, each of so many steps.
    Others in each run, unless they are to be the same."""
    case: Any = machine.TestCase
    number = max(settings().max_examples * percent // 100, 1)
    case.settings = settings(
        max_examples=number, stateful_step_count=steps, derandomize=are_the_same
    )
    found: type[TestCase] = case
    return found
