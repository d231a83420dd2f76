"""One shard of a crawl on Redis: the scripts, called with values and answered in values."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec
from redis.exceptions import NoScriptError

from shoal.config import Rules
from shoal.core.exits import Lent
from shoal.drivers.redis.failures import ScriptError
from shoal.drivers.redis.link import RedisLink
from shoal.drivers.redis.scripts import Argument, Script
from shoal.errors import ConfigError, StorageBusy, StorageFailed, UnknownCrawl
from shoal.frontier.redis.forms import (
    Group,
    epoch_of,
    finish_args,
    has_lanes,
    leases_of,
    owner_of,
    pack_values,
    seconds_or_none,
    shares_of,
    sizes_of,
)
from shoal.frontier.redis.layout import FIELD, check_layout, newer
from shoal.frontier.redis.rules import numbers_of
from shoal.frontier.redis.scripts import all_scripts, script
from shoal.frontier.redis.windows import Travel
from shoal.frontier.values import Added, Ask, CrawlState, Grant, Lease, Outcome

MOST_LEASES = 1000
"""At once: a Lua script cannot return much longer lists."""

MOST_UNSURE = 2000

TRAVELS = (
    "{}: tasks of crawl '{}' are with a carrier: it goes on with the --frontier and --state that it"
    " was begun with"
)

Clock = Callable[[], float]


class Told(NamedTuple):
    """What a script says of its shard beside its answer."""

    state: CrawlState
    idle: bool


class Offer(NamedTuple):
    """A shard's answer to a request for work."""

    grant: Grant
    idle: bool
    holds: bool
    """Whether the worker holds tasks here. Only known where there are suspects."""


class _LeaseCall(NamedTuple):
    """A call of lease.lua: what its tokens begin with, when it was made, and its arguments."""

    nonce: str
    decided: float
    ask: Ask
    start: list[Argument]
    unsure: list[str]

    @property
    def args(self) -> list[Argument]:
        """For crawls without pools."""
        holdings = self.ask.holdings
        return [*self.start, pack_values(holdings) if holdings else b"", *self.unsure]

    @property
    def by_exits(self) -> list[Argument]:
        """For crawls with pools: see lane_leasing.lua."""
        ask = self.ask
        dice = random.random()  # noqa: S311
        return [
            *self.start,
            pack_values((ask.holdings, ask.pools, ask.slots, dice)),
            *self.unsure,
        ]


class Shard:
    """A shard, by its tag: what is between the braces of its keys."""

    def __init__(
        self,
        link: RedisLink,
        crawl: str,
        tag: str,
        clock: Clock | None,
        on_new_server: Callable[[], Awaitable[None]],
        on_unknown: Callable[[], None],
        travel: Travel | None = None,
    ) -> None:
        """`travel` is for clients with a carrier: see windows.py."""
        self.crawl = crawl
        self.base = f"shoal:{{{tag}}}:"
        self.key = f"{self.base}crawl"
        self._link = link
        self._clock = clock
        self._on_new_server = on_new_server
        self._on_unknown = on_unknown
        self._id = ""
        self._unsure: list[str] = []
        self._travel = travel
        self._by_exits = False
        """Whether the crawl has pools, as a script has said."""

    async def run(self, name: str, *args: Argument) -> Any:
        """Run a script here. Raises UnknownCrawl, or StorageFailed if a crawl that was here is not
        and nobody has asked for that."""
        try:
            return await self._run(name, self._now(), *args)
        except ScriptError as error:
            if not self._learns(error):
                raise await self._missing() from None
        return await self.run(name, *args)

    def _learns(self, error: Exception) -> bool:
        """Whether a script says that the crawl has pools: then the other form of it, which never
        says so, is to be run. Nothing was done. Several that run at once may all say it. Raises
        ConfigError if its tasks travel, and we could not bring them back; NewerFormat."""
        code, _, rest = str(error).partition(" ")
        if code == "NEWER":
            raise newer(rest, self._link.shown, self.crawl) from None
        if code == "CARRIED":
            raise ConfigError(TRAVELS.format(self._link.shown, self.crawl)) from None
        is_other_form_wanted = code == "BYEXITS"
        self._by_exits = self._by_exits or is_other_form_wanted
        return is_other_form_wanted

    def call(self, name: str, *args: Argument) -> Sequence[Argument]:
        """The command that runs a script here, for `RedisLink.together`."""
        return self._script(name).by_digest([self.key], self._now(), *args)

    def _script(self, name: str) -> Script:
        return script(name, by_exits=self._by_exits, carried=self._travel is not None)

    async def run_with(
        self, more: Sequence[Sequence[Argument]], name: str, *args: Argument
    ) -> tuple[Any, list[Any]]:
        """Run a script, and in the same round trip plain commands. Their errors are answers."""
        answer, *others = await self._link.together(self.call(name, *args), *more)
        if isinstance(answer, Exception):
            answer = await self.run(name, *args)
        return answer, others

    async def _run(self, name: str, *args: Argument) -> Any:
        for _ in range(3):
            try:
                return await self._link.run_known(self._script(name), self.key, *args)
            except NoScriptError:
                # Before anybody can do anything on this server, the news is out.
                await self._on_new_server()
                await self._link.load(all_scripts(carried=self._travel is not None), self.key)
        raise StorageBusy(f"{self._link.shown} keeps forgetting scripts")

    async def note_new_server(self) -> None:
        """The server does not know our scripts: it was restarted, or another has taken over. It may
        have lost the last moments (see `life` in step.lua), and no lease could be renewed."""
        await self._link.run(script("grace"), [self.key], self._now())

    def _now(self) -> str:
        """The time for a script: ours if we have a clock, else it takes the server's."""
        return f"{self._clock() * 1e6:.0f}" if self._clock else ""

    async def _missing(self) -> Exception:
        """Why the crawl is not there."""
        if self._id and not await self._link.command("EXISTS", f"{self.base}forgotten"):
            return StorageFailed(
                f"{self._link.shown} has lost crawl '{self.crawl}': it was restarted without"
                " its data, or emptied. --fresh starts the crawl over."
            )
        self._id = ""
        self._on_unknown()
        return UnknownCrawl(self.crawl)

    async def start(self, action: str, shards: int, rules: Rules) -> CrawlState:
        """As start.lua has it: `make`, `start` or `begin`."""
        of_window = self._travel.window.numbers if self._travel else {}
        numbers = pack_values(numbers_of(rules, shards) | of_window)
        new_id, as_json = secrets.token_hex(4), msgspec.json.encode(rules)
        by_carrier = self._travel.papers() if self._travel else []
        state = await self.run("start", action, new_id, as_json, numbers, *by_carrier)
        return CrawlState(state.decode())

    async def add(self, groups: Sequence[Group]) -> tuple[CrawlState, Added]:
        """Queue what was never seen. Returns the state before."""
        sizes, entries = sizes_of(groups)
        self._by_exits = self._by_exits or has_lanes(sizes)
        state, added, duplicates = await self.run("add", pack_values(sizes), *entries)
        return CrawlState(state.decode()), Added(added, duplicates)

    async def remember(self, fingerprints: Sequence[bytes]) -> CrawlState:
        """Know these as done. Returns the state."""
        return CrawlState((await self.run("remember", *fingerprints)).decode())

    async def lease(self, ask: Ask, *, suspects: bool) -> Offer:
        """Ask for work. Suspects are handed out only with `suspects`."""
        with self._leasing(ask, suspects=suspects) as lease:
            return self._offer(lease, await self._run_lease(lease))

    async def _run_lease(self, lease: _LeaseCall) -> Any:
        args = lease.by_exits if self._by_exits else lease.args
        try:
            return await self._run("lease", self._now(), *args)
        except ScriptError as error:
            if not self._learns(error):
                raise await self._missing() from None
        return await self._run_lease(lease)

    async def exchange(self, outcomes: Sequence[Outcome], ask: Ask) -> tuple[list[Lease], Grant]:
        """Finish, then lease, in one round trip. Returns the stale leases, and what was granted."""
        with self._leasing(ask, suspects=True) as lease:
            finish = self._finish_args(outcomes)
            args = lease.by_exits if self._by_exits else lease.args
            finished, leased = await self._link.together(
                self.call("finish", *finish), self.call("lease", *args)
            )
            # A new server, or no such crawl: `run` knows what to do. Only what failed is done
            # again: where a lease was granted, the same tokens would be granted once more.
            if isinstance(finished, Exception):
                finished = await self.run("finish", *finish)
            if isinstance(leased, Exception):
                leased = await self._run_lease(lease)
            return _told(finished, outcomes)[1], self._offer(lease, leased).grant

    @contextmanager
    def _leasing(self, ask: Ask, *, suspects: bool) -> Iterator[_LeaseCall]:
        """If the answer is lost, what was granted is given back by the next call."""
        nonce, room = secrets.token_hex(6) + ".", min(ask.room, MOST_LEASES)
        start: list[Argument] = [ask.worker, room, nonce, int(suspects)]
        try:
            yield _LeaseCall(nonce, time.monotonic(), ask, start, self._unsure)
        except StorageBusy:
            tokens = [f"{nonce}{number + 1}" for number in range(room)]
            self._unsure = (self._unsure + tokens)[-MOST_UNSURE:]
            raise
        self._unsure = []

    def _offer(self, call: _LeaseCall, answer: list[Any]) -> Offer:
        state, crawl_id, life, now, wait, idle, holds, alone, waiting, told, *granted = answer
        self._id = crawl_id.decode()
        grant = Grant(
            state=CrawlState(state.decode()),
            leases=leases_of(granted, call.nonce, int(now) / 1e6 - call.decided, alone=bool(alone)),
            shares=shares_of(told),
            wait_s=seconds_or_none(wait),
            has_waiting=waiting > 0,
            epoch=epoch_of(self._id, life.decode()),
            decided=call.decided,
        )
        return Offer(grant, bool(idle), bool(holds))

    async def renew(self, leases: Sequence[Lease]) -> list[Lease]:
        """Prolong leases. Returns those that are no longer owned."""
        stale = await self.run("renew", *map(owner_of, leases))
        return [leases[number - 1] for number in stale]

    async def finish(
        self, outcomes: Sequence[Outcome], others: Sequence[Group] = ()
    ) -> tuple[Told, list[Lease]]:
        """End tries, and queue follow-ups of other shards' tries. Returns the stale leases."""
        return _told(await self.run("finish", *self._finish_args(outcomes, others)), outcomes)

    def _finish_args(
        self, outcomes: Sequence[Outcome], others: Sequence[Group] = ()
    ) -> list[Argument]:
        args, of_lanes = finish_args(outcomes, others)
        self._by_exits = self._by_exits or of_lanes
        return args

    async def release(self, worker: str) -> tuple[Told, int]:
        """Take back what a dead worker held."""
        state, idle, count = await self.run("release", worker)
        return Told(CrawlState(state.decode()), bool(idle)), count

    async def control(self, action: str) -> tuple[CrawlState, Told]:
        """Steer it. Returns the state before, and what it is now."""
        was, state, idle = await self.run("control", action)
        return CrawlState(was.decode()), Told(CrawlState(state.decode()), bool(idle))

    async def retry_or_purge(
        self, fingerprints: Sequence[bytes], *, retry: bool
    ) -> tuple[CrawlState, bool, int]:
        """Give dead tasks a fresh start, or drop them. Returns the state before, whether it is idle
        now, and how many."""
        action = "retry" if retry else "purge"
        was, idle, count = await self.run("retry_or_purge", action, *fingerprints)
        return CrawlState(was.decode()), bool(idle), count

    async def turn(self, host: str, lent: Lent | None) -> float:
        """Reserve one more turn at a host. Returns how long to wait for it; 0: it is reserved."""
        return int(await self.run("turn", host, lent.exit if lent else "")) / 1e6

    async def counts(self) -> dict[str, str]:
        """All that is counted and known of it, by name: see stats.lua. And its `epoch`."""
        return self.counts_of(await self.run("stats"))

    def counts_of(self, flat: list[Any]) -> dict[str, str]:
        """All that is counted and known of it, read from the answer of stats.lua."""
        told = {
            name.decode(): value.decode() if isinstance(value, bytes) else str(value)
            for name, value in zip(flat[::2], flat[1::2], strict=True)
        }
        self._id = told["id"]
        return told | {"epoch": str(epoch_of(self._id, told["life"]))}

    async def prefix(self) -> str:
        """What all keys of the crawl as it is now begin with. Raises as `run` does."""
        crawl_id, layout = await self._link.command("HMGET", self.key, "id", FIELD)
        if crawl_id is None:
            raise await self._missing()
        check_layout(layout, self._link.shown, self.crawl)
        return f"{self.base}{crawl_id.decode()}:"


def _told(answer: list[Any], outcomes: Sequence[Outcome]) -> tuple[Told, list[Lease]]:
    state, idle, *stale = answer
    told = Told(CrawlState(state.decode()), bool(idle))
    return told, [outcomes[number - 1].lease for number in stale]
