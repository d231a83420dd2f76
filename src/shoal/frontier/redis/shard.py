"""One shard of a crawl on Redis: calls the scripts, with values as arguments and answers."""

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
from shoal.frontier.redis.windows import CarrierSetup
from shoal.frontier.values import Added, Ask, CrawlState, Grant, Lease, Outcome

MOST_LEASES = 1000
"""How many leases are asked for at once: a Lua script cannot return much longer lists."""

MOST_UNSURE = 2000

HAS_CARRIER = (
    "{}: tasks of crawl '{}' are with a carrier: it goes on with the --frontier and --state that it"
    " was begun with"
)

Clock = Callable[[], float]


class ShardState(NamedTuple):
    """The state of a shard after a script has run."""

    state: CrawlState
    idle: bool


class Offer(NamedTuple):
    """A shard's answer to a request for work."""

    grant: Grant
    idle: bool
    holds: bool
    """Whether the worker holds tasks here. Only known if there are suspects."""


class _LeaseCall(NamedTuple):
    """A call of lease.lua: the prefix of its tokens, when it was made, and its arguments."""

    nonce: str
    decided: float
    ask: Ask
    start: list[Argument]
    unsure: list[str]

    @property
    def args(self) -> list[Argument]:
        """The arguments for a crawl without pools."""
        holdings = self.ask.holdings
        return [*self.start, pack_values(holdings) if holdings else b"", *self.unsure]

    @property
    def by_exits(self) -> list[Argument]:
        """The arguments for a crawl with pools: see lane_leasing.lua."""
        ask = self.ask
        dice = random.random()  # noqa: S311
        return [
            *self.start,
            pack_values((ask.holdings, ask.pools, ask.slots, dice)),
            *self.unsure,
        ]


class Shard:
    """A shard of a crawl. Its tag is the part of its keys that stands between braces."""

    def __init__(
        self,
        link: RedisLink,
        crawl: str,
        tag: str,
        clock: Clock | None,
        on_new_server: Callable[[], Awaitable[None]],
        on_unknown: Callable[[], None],
        carrier_setup: CarrierSetup | None = None,
    ) -> None:
        """`carrier_setup` is for clients with a carrier: see windows.py."""
        self.crawl = crawl
        self.base = f"shoal:{{{tag}}}:"
        self.key = f"{self.base}crawl"
        self._link = link
        self._clock = clock
        self._on_new_server = on_new_server
        self._on_unknown = on_unknown
        self._id = ""
        self._unsure: list[str] = []
        self._carrier_setup = carrier_setup
        self._by_exits = False
        """Whether the crawl is known to have pools."""

    async def run(self, name: str, *args: Argument) -> Any:
        """Run a script on this shard. Raises UnknownCrawl, or StorageFailed if the crawl existed
        and is gone without having been forgotten."""
        try:
            return await self._run(name, self._now(), *args)
        except ScriptError as error:
            if not self._needs_other_form(error):
                raise await self._missing() from None
        return await self.run(name, *args)

    def _needs_other_form(self, error: Exception) -> bool:
        """Whether the error says that the crawl has pools. Then the script has changed nothing, and
        its other form, which never fails so, is to be run. Several calls that run at once may all
        get this error. Raises ConfigError if the crawl has a carrier and this client has none, and
        NewerFormat if a newer version has written the crawl."""
        code, _, rest = str(error).partition(" ")
        if code == "NEWER":
            raise newer(rest, self._link.shown, self.crawl) from None
        if code == "CARRIED":
            raise ConfigError(HAS_CARRIER.format(self._link.shown, self.crawl)) from None
        is_other_form_wanted = code == "BYEXITS"
        self._by_exits = self._by_exits or is_other_form_wanted
        return is_other_form_wanted

    def call(self, name: str, *args: Argument) -> Sequence[Argument]:
        """The command that runs a script on this shard, for `RedisLink.together`."""
        return self._script(name).by_digest([self.key], self._now(), *args)

    def _script(self, name: str) -> Script:
        return script(name, by_exits=self._by_exits, carried=self._carrier_setup is not None)

    async def run_with(
        self, more: Sequence[Sequence[Argument]], name: str, *args: Argument
    ) -> tuple[Any, list[Any]]:
        """Run a script and, in the same round trip, plain commands. If a command fails, its answer
        is the error."""
        answer, *others = await self._link.together(self.call(name, *args), *more)
        if isinstance(answer, Exception):
            answer = await self.run(name, *args)
        return answer, others

    async def _run(self, name: str, *args: Argument) -> Any:
        for _ in range(3):
            try:
                return await self._link.run_known(self._script(name), self.key, *args)
            except NoScriptError:
                # All shards must learn this before any client can run scripts on this server.
                await self._on_new_server()
                await self._link.load(
                    all_scripts(carried=self._carrier_setup is not None), self.key
                )
        raise StorageBusy(f"{self._link.shown} keeps forgetting scripts")

    async def note_new_server(self) -> None:
        """Note that a server did not know our scripts: it was restarted, or another took over. It
        may have lost the last moments (see `life` in step.lua), and leases could not be renewed
        meanwhile."""
        await self._link.run(script("grace"), [self.key], self._now())

    def _now(self) -> str:
        """The time to pass to a script. Empty without a clock of our own: it uses the server's."""
        return f"{self._clock() * 1e6:.0f}" if self._clock else ""

    async def _missing(self) -> Exception:
        """The error to raise when the crawl does not exist."""
        if self._id and not await self._link.command("EXISTS", f"{self.base}forgotten"):
            return StorageFailed(
                f"{self._link.shown} has lost crawl '{self.crawl}': it was restarted without"
                " its data, or emptied. --fresh starts the crawl over."
            )
        self._id = ""
        self._on_unknown()
        return UnknownCrawl(self.crawl)

    async def start(self, action: str, shards: int, rules: Rules) -> CrawlState:
        """Create or start the crawl. The action is `make`, `start` or `begin`: see start.lua.
        Returns the state."""
        of_window = self._carrier_setup.window.numbers if self._carrier_setup else {}
        numbers = pack_values(numbers_of(rules, shards) | of_window)
        new_id, as_json = secrets.token_hex(4), msgspec.json.encode(rules)
        by_carrier = self._carrier_setup.start_args() if self._carrier_setup else []
        state = await self.run("start", action, new_id, as_json, numbers, *by_carrier)
        return CrawlState(state.decode())

    async def add(self, groups: Sequence[Group]) -> tuple[CrawlState, Added]:
        """Queue tasks that were never seen. Returns the state before, and how many were added."""
        sizes, entries = sizes_of(groups)
        self._by_exits = self._by_exits or has_lanes(sizes)
        state, added, duplicates = await self.run("add", pack_values(sizes), *entries)
        return CrawlState(state.decode()), Added(added, duplicates)

    async def remember(self, fingerprints: Sequence[bytes]) -> CrawlState:
        """Remember these fingerprints as done. Returns the state."""
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
            if not self._needs_other_form(error):
                raise await self._missing() from None
        return await self._run_lease(lease)

    async def exchange(self, outcomes: Sequence[Outcome], ask: Ask) -> tuple[list[Lease], Grant]:
        """Finish, then lease, in one round trip. Returns the stale leases, and the grant."""
        with self._leasing(ask, suspects=True) as lease:
            finish = self._finish_args(outcomes)
            args = lease.by_exits if self._by_exits else lease.args
            finished, leased = await self._link.together(
                self.call("finish", *finish), self.call("lease", *args)
            )
            # A new server, or no such crawl: `run` handles that. Only what failed is repeated:
            # after a successful lease, the same tokens would be granted once more.
            if isinstance(finished, Exception):
                finished = await self.run("finish", *finish)
            if isinstance(leased, Exception):
                leased = await self._run_lease(lease)
            return _read_finish(finished, outcomes)[1], self._offer(lease, leased).grant

    @contextmanager
    def _leasing(self, ask: Ask, *, suspects: bool) -> Iterator[_LeaseCall]:
        """Prepare a call of lease.lua. If its answer is lost, the next call gives back what it was
        granted."""
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
        """Prolong leases. Returns those that are no longer ours."""
        stale = await self.run("renew", *map(owner_of, leases))
        return [leases[number - 1] for number in stale]

    async def finish(
        self, outcomes: Sequence[Outcome], others: Sequence[Group] = ()
    ) -> tuple[ShardState, list[Lease]]:
        """End tries, and queue follow-ups of other shards' tries. Returns the state, and the stale
        leases."""
        return _read_finish(
            await self.run("finish", *self._finish_args(outcomes, others)), outcomes
        )

    def _finish_args(
        self, outcomes: Sequence[Outcome], others: Sequence[Group] = ()
    ) -> list[Argument]:
        args, of_lanes = finish_args(outcomes, others)
        self._by_exits = self._by_exits or of_lanes
        return args

    async def release(self, worker: str) -> tuple[ShardState, int]:
        """Take back what a dead worker held. Returns the state, and the number of leases."""
        state, idle, count = await self.run("release", worker)
        return ShardState(CrawlState(state.decode()), bool(idle)), count

    async def control(self, action: str) -> tuple[CrawlState, ShardState]:
        """Apply an action to the shard. Returns the state before, and the state now."""
        was, state, idle = await self.run("control", action)
        return CrawlState(was.decode()), ShardState(CrawlState(state.decode()), bool(idle))

    async def retry_or_purge(
        self, fingerprints: Sequence[bytes], *, retry: bool
    ) -> tuple[CrawlState, bool, int]:
        """Retry or purge dead tasks. Returns the state before, whether the shard is idle now, and
        how many tasks were retried or purged."""
        action = "retry" if retry else "purge"
        was, idle, count = await self.run("retry_or_purge", action, *fingerprints)
        return CrawlState(was.decode()), bool(idle), count

    async def turn(self, host: str, lent: Lent | None) -> float:
        """Reserve one more turn at a host. Returns 0 if it is reserved, or how long to wait before
        asking again."""
        return int(await self.run("turn", host, lent.exit if lent else "")) / 1e6

    async def counts(self) -> dict[str, str]:
        """All fields and counters of the shard, by name: see stats.lua; and its `epoch`."""
        return self.counts_of(await self.run("stats"))

    def counts_of(self, flat: list[Any]) -> dict[str, str]:
        """All fields and counters of the shard, as `counts` returns them, read from the answer of
        stats.lua."""
        told = {
            name.decode(): value.decode() if isinstance(value, bytes) else str(value)
            for name, value in zip(flat[::2], flat[1::2], strict=True)
        }
        self._id = told["id"]
        return told | {"epoch": str(epoch_of(self._id, told["life"]))}

    async def prefix(self) -> str:
        """The prefix of all keys of the crawl, with its current ID. Raises what `run` raises."""
        crawl_id, layout = await self._link.command("HMGET", self.key, "id", FIELD)
        if crawl_id is None:
            raise await self._missing()
        check_layout(layout, self._link.shown, self.crawl)
        return f"{self.base}{crawl_id.decode()}:"


def _read_finish(answer: list[Any], outcomes: Sequence[Outcome]) -> tuple[ShardState, list[Lease]]:
    state, idle, *stale = answer
    after = ShardState(CrawlState(state.decode()), bool(idle))
    return after, [outcomes[number - 1].lease for number in stale]
