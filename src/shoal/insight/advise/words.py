"""Puts advice into plain words. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from shoal.core.ledger import Cause
from shoal.insight.advise.advice import Advice, Advised, Due, Outcome, Readiness
from shoal.insight.advise.floor import FloorReason
from shoal.insight.advise.levers import Effect, Lever
from shoal.insight.advise.model import Forecast, Limit
from shoal.insight.advise.paces import floor_words, pace_words, rate_of
from shoal.insight.advise.prices import Machines, Prices, Scale
from shoal.insight.advise.seen import FleetSeen
from shoal.insight.advise.situation import ENOUGH_PAGES, ENOUGH_S, Situation
from shoal.insight.explain_rows import Row
from shoal.insight.figures import counted, duration, size, speed
from shoal.insight.moments import shown_moment

_NOT_READY = {
    Readiness.NEW: "nobody has started it yet; it has seeds: shoal crawl TARGET, or shoal worker",
    Readiness.PAUSED: "it is paused: shoal resume {crawl}, and ask again in a minute",
    Readiness.CANCELLED: "it was cancelled, there is nothing left to do",
    Readiness.FINISHED: "it is finished, there is nothing left to do",
    Readiness.IDLE: "nothing is left to do; it waits for seeds",
    Readiness.SEEDING: "seeds are being read; ask again in a minute",
    Readiness.NO_WORKERS: "no worker is at work: start one, and ask again in a minute",
    Readiness.BROKEN: "all that is left is at {broken} that {keep} failing; more workers would not"
    " help",
    Readiness.TOO_EARLY: "too early: {why}",
}
_LIMITS = {
    Limit.CPU: "workers are busy reading pages, which takes {main_ms:.3g} ms of a core for each",
    Limit.CORES: "all cores of the machines are busy",
    Limit.MEMORY: "the machines have no memory for more workers",
    Limit.NETWORK: "the network of the machines",
    Limit.STORES: "results or archive: slots wait for them {stores:.0%} of the time, and workers"
    " are busy with them {save_use:.0%}",
    Limit.FRONTIER: "the frontier: slots wait for it {frontier:.0%} of the time",
    Limit.WORK: "there is nothing to do",
}
_TAKEN_CORES = (
    "workers wait for a core longer than they use one: {machine_use:.0%} of the cores are in use,"
    " by them and other programs"
)
STOLEN = 0.05
"""Steal is mentioned if other virtual machines took at least this share of the cores."""
SLOTS = "all slots are in use"
_HELP = {
    Lever.CONCURRENCY: "twice the requests at once per worker (--concurrency {slots:.0f})",
    Lever.RATE: "twice the rate (--rate {rate})",
    Lever.ROOM: "twice the requests at once per host (--concurrency-per-host {room})",
    Lever.EXITS: "twice the exits or accounts",
    Lever.STORES: "results and archive that are twice as fast",
}
_OF_HOSTS = (Lever.RATE, Lever.ROOM)
"""Changes that put more load on hosts, which must agree to it."""


def rows(advice: Advice, prices: Prices) -> list[Row]:
    """All advice, as rows of a name and one or several sentences."""
    situation, advised = advice.situation, advice.advised
    if advised is None:
        return [("advice", _not_ready(advice))]
    return [
        ("left", list(_left(situation))),
        ("limit", limit_words(advised.now, advised.fleet)),
        ("now", f"{_workers(advised.now)}: {_done(advised.now.forecast, situation)}"),
        ("enough", _enough(advised, situation)),
        *([("floor", floor_words(advised.enough.floor))] if advised.enough.floor else []),
        *([("deadline", _due(advised.due))] if advised.due else []),
        ("would help", list(_helps(advised)) or "nothing that we know of"),
        ("would not", list(_helps_not(advised)) or "nothing that we know of"),
        ("machines", list(_machines(advised, prices))),
        *([("cost", cost_words(advised.enough, prices))] if advised.enough.cost else []),
    ]


def _not_ready(advice: Advice) -> str:
    situation = advice.situation
    if advice.readiness is Readiness.FINISHED and situation.beyond:
        return (
            f"it is finished: {counted(situation.beyond, 'page')} more would go beyond --max-pages;"
            " shoal crawl with a larger one goes on"
        )
    why = situation.too_early
    if situation.fleet is not None:
        why += f"; there is enough to go by after {ENOUGH_S:.0f} s or {ENOUGH_PAGES} pages"
    return _NOT_READY[advice.readiness].format(
        crawl=shlex.quote(situation.crawl),
        why=why,
        broken=counted(situation.broken, "host"),
        keep=_keep(situation.broken),
    )


def _keep(hosts: int) -> str:
    return "keeps" if hosts == 1 else "keep"


def _left(situation: Situation) -> Iterator[str]:
    yield counted(situation.remaining, "page")
    if situation.is_growing:
        yield (
            f"each page leads to {situation.growth:.2g} new ones: it is still growing, and no end"
            " can be said; what follows is for the pages that are known"
        )
    elif situation.growth:
        yield f"each page leads to {situation.growth:.2f} new ones, which are counted in"
    if situation.broken:
        hosts = counted(situation.broken, "host")
        yield f"without those of {hosts} that {_keep(situation.broken)} failing"


def limit_words(outcome: Outcome, fleet: FleetSeen) -> str:
    """The limit of a plan, in words."""
    limit, plan = outcome.forecast.limit, outcome.forecast.plan
    if limit is Limit.CPU and fleet.is_kept_from_cores:
        return _TAKEN_CORES.format(machine_use=fleet.machine_use)
    if limit is Limit.SLOTS:
        each = counted(round(plan.slots), "request")
        return f"{SLOTS}: {counted(plan.workers, 'worker')} with {each} at once"
    if limit not in _LIMITS and outcome.floor is not None:
        return pace_words(outcome.floor)
    return _LIMITS[limit].format(
        main_ms=fleet.main_s * 1000,
        stores=fleet.share(Cause.STORES),
        frontier=fleet.share(Cause.FRONTIER),
        save_use=fleet.save_use,
    )


def _workers(outcome: Outcome) -> str:
    return counted(outcome.forecast.plan.workers, "worker")


def _done(forecast: Forecast, situation: Situation) -> str:
    end = shown_moment(situation.at + forecast.seconds)
    return f"{speed(forecast.per_s)} pages/s, done in {duration(forecast.seconds)} ({end} UTC)"


def _enough(advised: Advised, situation: Situation) -> str:
    now, enough = advised.now.forecast.plan.workers, advised.enough.forecast.plan.workers
    if enough == now:
        return f"{_workers(advised.enough)}, as there are"
    if enough < now:
        others = "the other one makes" if now - enough == 1 else f"the other {now - enough} make"
        return f"{_workers(advised.enough)}: {others} no difference"
    done = _done(advised.enough.forecast, situation)
    return f"{_workers(advised.enough)}: {done}; then {limit_words(advised.most, advised.fleet)}"


def _due(due: Due) -> str:
    by = f"{shown_moment(due.at)} UTC"
    if due.workers is not None:
        done = "is" if due.workers == 1 else "are"
        return f"{counted(due.workers, 'worker')} {done} enough to be done by {by}"
    late_s = due.forecast.seconds - due.left_s
    return f"no number of workers meets {by}: at best {duration(late_s)} late"


def _helps(advised: Advised) -> Iterator[str]:
    for effect in advised.effects:
        if effect.helps:
            yield f"{_help(effect)}: {_times(effect)}"
    floor = advised.most.floor
    if floor is not None and floor.why is FloorReason.REFUSED:
        yield "a lower rate, which the host does not refuse: after each 429 all of us wait"


def _help(effect: Effect) -> str:
    plan = effect.forecast.plan
    if effect.lever is Lever.WORKERS:
        return counted(plan.workers, "worker")
    text = _HELP[effect.lever].format(slots=plan.slots, rate=rate_of(plan.rate), room=plan.room)
    return f"{text}, if the hosts agree to it" if effect.lever in _OF_HOSTS else text


def _times(effect: Effect) -> str:
    took = f"{duration(effect.forecast.seconds)} instead of {duration(effect.before_s)}"
    of_now = effect.lever in (Lever.WORKERS, Lever.CONCURRENCY)
    return took if of_now else f"{took} with {counted(effect.forecast.plan.workers, 'worker')}"


def _helps_not(advised: Advised) -> Iterator[str]:
    in_vain = {effect.lever for effect in advised.effects if not effect.helps}
    if Lever.WORKERS in in_vain:
        also = ", or more requests at once per worker" if Lever.CONCURRENCY in in_vain else ""
        yield f"more workers{also}: {limit_words(advised.most, advised.fleet)}"
    if Lever.RATE in in_vain:
        yield f"a higher rate: {limit_words(advised.most, advised.fleet)}"


def _machines(advised: Advised, prices: Prices) -> Iterator[str]:
    yield machine_words(advised.machines, prices)
    stolen = advised.fleet.stolen_use
    if stolen >= STOLEN:
        yield f"other virtual machines took {stolen:.0%} of the CPU time of those at work (steal)"


def machine_words(machines: Machines, prices: Prices) -> str:
    """The machines that a plan needs, in words."""
    memory = f" and {size(machines.memory_bytes)}" if machines.memory_bytes else ""
    of_each = f"with {counted(machines.cores, 'core')}{memory}"
    match machines.scale:
        case Scale.ONE:
            return f"one {of_each} is enough"
        case Scale.UP:
            return f"one that is larger, {of_each}, rather than several"
        case Scale.OUT:
            return f"{machines.count:,} {of_each} each: {_why_several(machines, prices)}"


def _why_several(machines: Machines, prices: Prices) -> str:
    limit = f"{prices.scale_out_above:,.0f} {prices.currency} a month"
    return {
        "network": "one has not enough of a network",
        "size": "there are no machines that are so large",
        "price": f"one that is so large costs more than {limit}",
    }.get(machines.why, "as many as are asked for")


def cost_words(outcome: Outcome, prices: Prices) -> str:
    """The cost of a plan, in words. Empty if nothing has a price."""
    cost = outcome.cost
    if cost is None:
        return ""
    parts = {"machines": cost.machines, "proxies": cost.proxies, "stores": cost.stores}
    shown = ", ".join(f"{name} {value:,.2f}" for name, value in parts.items() if value)
    month = cost.machines_per_month
    also = f"; a whole month of the machines is {month:,.2f}" if month else ""
    return f"{cost.total:,.2f} {prices.currency} until it is done ({shown or 'nothing'}){also}"
