"""What a task group's errors come down to."""

from __future__ import annotations

from shoal.errors import StorageFailed, cause_of


def test_our_own_error_is_the_cause_however_deep_it_is() -> None:
    ours = StorageFailed("disk full")
    group = BaseExceptionGroup("", [ValueError(), BaseExceptionGroup("", [KeyError(), ours])])
    assert cause_of(group) is ours


def test_without_one_of_ours_the_group_is_the_cause() -> None:
    group = BaseExceptionGroup("", [ValueError()])
    assert cause_of(group) is group
