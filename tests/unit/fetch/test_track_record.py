"""Decides whether an invalid certificate is the host's own or was forged by an exit."""

from __future__ import annotations

import pytest

from shoal.core.exits import Blame
from shoal.errors import ExitFault, FetchError
from shoal.fetch.http import track_record
from shoal.fetch.http.track_record import TRUSTED_S, TrackRecord
from shoal.fetch.http.ways import Origin

SHOP = Origin(True, "shop.example", 443)
OTHER = Origin(True, "other.example", 443)


def blame(error: FetchError) -> str:
    return error.blame if isinstance(error, ExitFault) else "host"


def test_of_an_exit_that_nothing_is_known_of_the_worst_is_believed() -> None:
    seen = TrackRecord()
    assert blame(seen.unverified("a", SHOP, "wrong")) == Blame.FORGED
    assert blame(seen.unverified("a", SHOP, "wrong")) == Blame.FORGED


def test_of_one_that_was_honest_elsewhere_it_is_not() -> None:
    seen = TrackRecord()
    seen.verified("a", OTHER)
    assert blame(seen.unverified("a", SHOP, "wrong")) == Blame.PAIR


def test_exits_that_agree_are_believed() -> None:
    seen = TrackRecord()
    seen.unverified("a", SHOP, "wrong")
    error = seen.unverified("b", SHOP, "wrong")
    assert (type(error), str(error)) == (FetchError, "wrong")


def test_a_host_that_had_the_right_one_is_believed_for_a_while() -> None:
    now = 0.0
    seen = TrackRecord(lambda: now)
    seen.unverified("a", SHOP, "wrong")
    seen.verified("b", SHOP)
    assert [blame(seen.unverified(name, SHOP, "wrong")) for name in "ac"] == [Blame.FORGED] * 2
    now = TRUSTED_S + 1
    assert blame(seen.unverified("c", SHOP, "wrong")) == Blame.FORGED
    assert blame(seen.unverified("b", SHOP, "wrong")) == "host"


def test_what_is_remembered_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track_record, "MAX_REMEMBERED", 3)
    seen = TrackRecord()
    for number in range(10):
        seen.worked(str(number))
    assert [name for name in map(str, range(10)) if seen.has_worked(name)] == ["7", "8", "9"]
