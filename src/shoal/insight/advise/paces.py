"""Says in plain words how fast hosts, chains and exits allow a crawl to be. Pure."""

from __future__ import annotations

from shoal.core.policy import Rate
from shoal.insight.advise.floor import OTHERS, Floor, FloorReason
from shoal.insight.figures import counted, duration, speed


def pace_words(floor: Floor) -> str:
    """Why the longest queue is no faster."""
    name = "a host that is not among the largest" if floor.name == OTHERS else floor.name
    also = _also(floor)
    turns = rate_words(1 / floor.turn_s) if floor.turn_s else ""
    match floor.why:
        case FloorReason.RATE:
            return f"{name} allows {rate_of(floor.rate)}{also}"
        case FloorReason.AUTO:
            return f"{name} answers in a time that allows {turns} (rate: auto){also}"
        case FloorReason.CRAWL_DELAY:
            return f"{name} asks for {floor.turn_s:g} s between requests (Crawl-delay){also}"
        case FloorReason.REFUSED:
            return f"{name} answers 429 above about {turns}{also}"
        case FloorReason.ASKED:
            return f"{name} asked for {floor.turn_s:.2g} s between requests (429 or 503){also}"
        case FloorReason.ROOM:
            return (
                f"{name} answers in {floor.hold_s:.2g} s, and only so many requests are made at"
                f" once (--concurrency-per-host){also}"
            )
        case FloorReason.CHAIN:
            return f"{name} is a chain, and goes one page after the other{also}"
        case FloorReason.EXITS:
            return f"the exits of {name} allow {rate_words(floor.per_s)}{also}"
        case FloorReason.ACCOUNTS:
            return f"the accounts of {name} allow {rate_words(floor.per_s)}{also}"


def _also(floor: Floor) -> str:
    """How many others are no faster."""
    if not floor.alike:
        return ", and so do others" if floor.are_more_alike else ""
    more = "more than " if floor.are_more_alike else ""
    return f", and so do {more}{counted(floor.alike, 'other')}"


def floor_words(floor: Floor) -> str:
    """The least time that the longest queue takes, and how it is calculated."""
    pace = rate_words(floor.per_s)
    if floor.why is FloorReason.RATE:
        # Turns are a little longer than the rate says, or some period would see one request more.
        pace = f"{rate_of(floor.rate)} (one every {floor.turn_s:.3g} s)"
    pages = counted(round(floor.pages), "page")
    return f"{floor.name}: {pages} at {pace} = {duration(floor.seconds)}"


def rate_words(per_s: float) -> str:
    """A speed in the notation of rates: 2/s, 30/m."""
    for count, unit in ((per_s, "s"), (per_s * 60, "m")):
        if count >= 1:
            return f"{speed(count)}/{unit}"
    return f"{per_s * 3600:.3g}/h"


def rate_of(rate: Rate) -> str:
    """A rate in its notation."""
    return rate_words(rate.count / rate.period_s)
