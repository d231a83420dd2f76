"""Simulates crawls with the real frontier and its real policy, on a simulated clock.

The site, the workers and the time are simulated. As in a real crawl, a `SqliteFrontier`, here in
memory, decides who may send what, and through which exit.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path

from msgspec.structs import replace

from shoal.config import Rules
from shoal.core.exit_policy import blocked_wait_s, faded
from shoal.core.exits import Exit, ExitEntry, Lent, Passage
from shoal.core.failures import FailureKind
from shoal.core.task import Task
from shoal.exits.scenes import MAX_S, STICKY_S, BanningSite, Figures, PlayedPool, Scene
from shoal.frontier.admission import Admission
from shoal.frontier.port import Frontier
from shoal.frontier.sqlite.frontier import SqliteFrontier
from shoal.frontier.values import Ask, Control, Grant, Lease, Outcome, Verdict

CRAWL = "simulation"
_EPOCH = 1_700_000_000.0
_ADD_AT_ONCE = 500
_SAMPLES = 200
_ASK_EVERY_S, _POLL_S = 0.01, 1.0
"""The shortest and the longest time until a worker asks for work again, as in real workers."""
_TOGETHER_S = 0.04
"""How long answers are collected before they are handed in, as in real workers."""

Watch = Callable[[str, int], object]
"""Called with a strategy and how many of its pages have ended."""


def by_strategy(scene: Scene, strategy: str) -> Scene:
    """The scene with its first pool set to a strategy."""
    first, *more = scene.pools
    rules = first.rules
    if strategy == "sticky":
        rules = replace(rules, rotation="rested", sticky_s=rules.sticky_s or STICKY_S)
    else:
        rules = replace(rules, rotation=strategy, sticky_s=0.0)
    return replace(scene, pools=(PlayedPool(rules, first.exits), *more))


async def simulate(scene: Scene, strategy: str, watch: Watch = lambda *_: None) -> Figures:
    """Simulate a scene with one strategy."""
    played = by_strategy(scene, strategy)
    clock = _Clock()
    frontier = SqliteFrontier(Path(":memory:"), clock)
    try:
        await _prepare(frontier, played)
        return await _Play(frontier, played, clock, Figures(strategy=strategy), watch).run()
    finally:
        await frontier.close()


async def _prepare(frontier: Frontier, scene: Scene) -> None:
    for pool in scene.pools:
        name = pool.rules.name
        exits = [ExitEntry(f"{name}-{number:010x}") for number in range(pool.exits)]
        await frontier.put_pool(pool.rules, exits)
    first = scene.pools[0].rules.name
    rules = Rules(
        rate=scene.rate,
        concurrency_per_host=scene.room,
        robots=False,
        pools=(first,),
        proxy_pool=first,
        max_blocks=scene.max_blocks,
        lease_s=MAX_S,
    )
    await frontier.start(CRAWL, rules)
    admission = Admission(rules)
    urls = [f"http://{scene.host}/{number}" for number in range(scene.pages)]
    for start in range(0, scene.pages, _ADD_AT_ONCE):
        part = urls[start : start + _ADD_AT_ONCE]
        await frontier.add(CRAWL, [admission.admit(Task(url=url)) for url in part])
    await frontier.control(CRAWL, Control.SEAL)


class _Clock:
    def __init__(self) -> None:
        self.now = _EPOCH

    def __call__(self) -> float:
        return self.now


class _Play:
    """The state of a running simulation.

    The policy does not distinguish workers, so they are simulated as one worker with all their
    slots. Answers that end at nearly the same time are handed in together, as real workers do.
    """

    def __init__(
        self, frontier: Frontier, scene: Scene, clock: _Clock, figures: Figures, watch: Watch
    ) -> None:
        self._frontier, self._scene, self._clock = frontier, scene, clock
        self._figures, self._watch = figures, watch
        self._site = BanningSite(scene)
        self._pools = tuple(pool.rules.name for pool in scene.pools)
        self._slots = scene.workers * scene.slots
        self._answers: list[tuple[float, int, Outcome]] = []
        """Requests in flight: when each ends, a unique number, and its outcome."""
        self._numbers = iter(range(10**12))
        self._asks_at = clock.now
        self._by_exit: Counter[str] = Counter()
        self._known: dict[str, Exit] = {}
        self._is_over = False

    async def run(self) -> Figures:
        """Run until all pages have ended, or until `MAX_S` is over."""
        while not self._is_over and self._clock.now < _EPOCH + MAX_S:
            await self._step()
        return await self._summed_up()

    async def _step(self) -> None:
        """Advance the clock to the next moment at which a request ends or may begin."""
        first_end = self._answers[0][0] if self._answers else inf
        moment_s = max(self._scene.latency_s / 10, _TOGETHER_S)
        self._clock.now = max(min(first_end + moment_s, self._asks_at), self._clock.now)
        ended = []
        while self._answers and self._answers[0][0] <= self._clock.now:
            ended.append(heapq.heappop(self._answers)[2])
        free = self._slots - len(self._answers)
        ask = Ask("fleet", free, pools=self._pools, slots=free)
        if ended:
            _, grant = await self._frontier.exchange(CRAWL, ended, ask)
            await self._note(ended)
        else:
            grant = await self._frontier.lease(CRAWL, ask)
        for lease in grant.leases:
            self._send(lease)
        self._is_over = grant.state.over
        self._asks_at = self._clock.now + _wait_s(grant)

    def _send(self, lease: Lease) -> None:
        """Send a request. Its outcome and its end are decided at once."""
        lent = lease.lent or Lent("")
        is_block = self._site.blocks(lent, self._clock.now)
        self._by_exit[lent.exit] += 1
        answer_at = self._clock.now + self._site.takes_s()
        made = self._outcome(lease, lent, is_block=is_block)
        heapq.heappush(self._answers, (answer_at, next(self._numbers), made))

    def _outcome(self, lease: Lease, lent: Lent, *, is_block: bool) -> Outcome:
        scene = self._scene
        verdict, dice = Verdict.DONE, self._site.dice()
        if is_block:
            verdict = Verdict.RETRY if lent.blocks + 1 < scene.max_blocks else Verdict.DEAD
        return Outcome(
            lease=lease,
            verdict=verdict,
            kind=FailureKind.BLOCKED,
            reason="blocked" if is_block else "",
            retry_in_s=blocked_wait_s(dice) if is_block else 0.0,
            blocked=int(is_block),
            wire_bytes=scene.block_bytes if is_block else scene.page_bytes,
            latency_s=scene.latency_s,
            passage=Passage(block="forbidden" if is_block else "", dice=dice),
        )

    async def _note(self, ended: Sequence[Outcome]) -> None:
        figures = self._figures
        done = sum(outcome.verdict is Verdict.DONE for outcome in ended)
        blocked = sum(outcome.blocked for outcome in ended)
        figures.done += done
        figures.dead += sum(outcome.verdict is Verdict.DEAD for outcome in ended)
        figures.requests += len(ended)
        figures.blocked += blocked
        figures.wire_bytes += sum(outcome.wire_bytes for outcome in ended)
        if blocked:
            await self._count_quarantines()
        if done and figures.done * _SAMPLES // self._scene.pages > len(figures.progress):
            figures.progress.append((self._clock.now - _EPOCH, figures.done))
            self._watch(figures.strategy, figures.done + figures.dead)

    async def _count_quarantines(self) -> None:
        """Count the blocks that exits were blamed for: each raises the score of its exit by one."""
        for pool in self._pools:
            for seen in await self._frontier.exits(pool):
                before = self._known.get(seen.id)
                known = faded(before.bad, before.scored_at, seen.scored_at) if before else 0.0
                self._figures.quarantines += round(seen.bad - known)
                self._known[seen.id] = seen

    async def _summed_up(self) -> Figures:
        figures = self._figures
        stats = await self._frontier.stats(CRAWL)
        figures.seconds = self._clock.now - _EPOCH
        figures.left = stats.remaining
        figures.dead = stats.dead
        figures.exits_used = len(self._by_exit)
        most = max(self._by_exit.values(), default=0)
        figures.busiest_share = most / max(self._by_exit.total(), 1)
        figures.cost = sum(pool.spent.total for pool in await self._frontier.pools())
        figures.progress = [(0.0, 0), *figures.progress, (figures.seconds, figures.done)]
        self._watch(figures.strategy, figures.done + figures.dead)
        return figures


def _wait_s(grant: Grant) -> float:
    """How long a worker with free slots waits until it asks again, if no request ends before."""
    if grant.wait_s is None:
        return _POLL_S
    return max(grant.wait_s, _ASK_EVERY_S)
