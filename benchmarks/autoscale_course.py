"""Simulates a crawl whose hosts come and go, with a scaled or a fixed number of workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

import msgspec

from shoal.config import Rules
from shoal.core.ledger import SlotTime, Work
from shoal.frontier.values import CrawlState, Host, Pulse, Stats
from shoal.insight.advise.fluid import Queue
from shoal.insight.advise.scaler import Scaler
from shoal.insight.advise.scaling import Bounds, Staff, Staffing
from shoal.insight.advise.situation import Look

STEP_S = 1.0
LOOK_EVERY_S = 3.0
STARTING_S = 2.0
"""How long a new worker takes until it gets its first page."""
LATELY_S = 60.0
SLOTS = 4
READ_S = 0.005
"""CPU time of the main thread per page."""
MOST = 20
RATE = "1/s"
TURN_S = 1.1


class Arrival(msgspec.Struct, frozen=True):
    """Hosts that the crawl finds at one time, with their pages."""

    at: float
    hosts: int
    pages: int
    latency_s: float = 2.0


class Moment(msgspec.Struct, frozen=True):
    """The state of the crawl at one time."""

    at: float
    workers: int
    of_use: float
    """How many workers all hosts together could keep busy."""
    why: str


class Course(msgspec.Struct, frozen=True):
    """How a crawl went, step by step."""

    seconds: float
    worker_s: float
    moments: list[Moment]

    @property
    def changes(self) -> Iterator[tuple[Moment, Moment]]:
        """The moments before and after each change of the number of workers."""
        return ((one, two) for one, two in pairwise(self.moments) if one.workers != two.workers)


SCENE = (
    Arrival(0, 30, 400),
    Arrival(600, 3, 900),
    Arrival(1000, 60, 250),
    Arrival(2300, 12, 300),
)


class Knowing(Scaler):
    """Wants as many workers as hosts can keep busy at the moment, without patience or steps."""

    def decide(self, look: Look | None, staff: Staff, now: float) -> Staffing:
        hosts = look.hosts if look is not None else []
        of_use = sum(host.latency_s + READ_S for host in hosts) / TURN_S / SLOTS
        return Staffing(workers=min(ceil(of_use), self.bounds.max), looked_at=now)


class SimulatedCrawl:
    """A crawl on a simulated clock. Without a `scaler`, the number of workers never changes."""

    def __init__(self, scene: Sequence[Arrival], workers: int, scaler: Scaler | None) -> None:
        self._coming = deque(sorted(scene, key=lambda arrival: arrival.at))
        self._hosts: list[tuple[str, list[float], float]] = []
        self._scaler = scaler
        self._began_at = [-STARTING_S] * workers
        self._lately: deque[tuple[float, float, float]] = deque(maxlen=int(LATELY_S / STEP_S))
        self._now = self._done = self._found = 0.0

    def run(self) -> Course:
        """Run the crawl to its end."""
        moments, worker_s, why = list[Moment](), 0.0, ""
        while self._coming or self._left():
            self._find()
            if self._scaler is not None and self._now % LOOK_EVERY_S == 0:
                why = self._scale(self._scaler)
            moments.append(Moment(self._now, len(self._began_at), self._of_use(), why))
            self._work()
            worker_s += len(self._began_at) * STEP_S
            self._now += STEP_S
        return Course(self._now, worker_s, moments)

    def _left(self) -> float:
        return sum(pages[0] for _, pages, _ in self._hosts)

    def _find(self) -> None:
        while self._coming and self._coming[0].at <= self._now:
            found = self._coming.popleft()
            self._found += found.hosts * found.pages
            for number in range(found.hosts):
                name = f"h{found.at:.0f}-{number}.example"
                self._hosts.append((name, [float(found.pages)], found.latency_s))

    def _queues(self) -> list[tuple[list[float], Queue]]:
        return [
            (pages, Queue(name, pages[0], latency_s + READ_S, TURN_S, 16))
            for name, pages, latency_s in self._hosts
            if pages[0] > 0
        ]

    def _of_use(self) -> float:
        return sum(queue.per_s * queue.hold_s for _, queue in self._queues()) / SLOTS

    def _work(self) -> None:
        """Serve all hosts for one step. Every page waits equally long for a slot."""
        ready = sum(self._now - began >= STARTING_S for began in self._began_at)
        queues = self._queues()
        wait_s, done, held = _wait_s([queue for _, queue in queues], ready * SLOTS), 0.0, 0.0
        for pages, queue in queues:
            served = min(queue.speed(wait_s) * STEP_S, pages[0]) if ready else 0.0
            pages[0] = max(pages[0] - served, 0.0) if pages[0] - served > 1e-6 else 0.0
            done += served
            held += served * queue.hold_s
        self._done += done
        self._lately.append((done, held, len(self._began_at)))

    def _scale(self, scaler: Scaler) -> str:
        decided = scaler.decide(self._look(), Staff(alive=len(self._began_at)), self._now)
        while len(self._began_at) < decided.workers:
            self._began_at.append(self._now)
        del self._began_at[decided.workers :]
        return decided.why

    def _look(self) -> Look:
        left = [(name, ceil(pages[0]), slow) for name, pages, slow in self._hosts if pages[0] > 0]
        waiting = sum(pages for _, pages, _ in left)
        done = round(self._done)
        stats = Stats(
            crawl="simulated",
            state=CrawlState.RUNNING,
            rules=Rules(rate=RATE),
            created_at=0.0,
            started_at=0.0,
            added=done + waiting,
            waiting=waiting,
            done=done,
            pages_per_s=sum(done for done, _, _ in list(self._lately)[-10:]) / 10,
        )
        hosts = [Host(host=name, waiting=pages, latency_s=slow) for name, pages, slow in left]
        pulses = [self._pulse(at, began) for at, began in enumerate(self._began_at)]
        return Look(at=self._now, stats=stats, workers=pulses, hosts=hosts)

    def _pulse(self, number: int, began: float) -> Pulse:
        seconds = min(self._now - began, LATELY_S)
        told = list(self._lately)[-int(seconds / STEP_S) :] if seconds >= STEP_S else []
        ended = sum(done / workers for done, _, workers in told if workers)
        held_s = sum(held / workers for _, held, workers in told if workers)
        read_s = ended * READ_S
        slots = SlotTime(fetch=held_s - read_s, parse=read_s, polite=seconds * SLOTS - held_s)
        lately = Work(
            seconds=seconds,
            pages=round(ended),
            ended=round(ended),
            slots=slots,
            fetches=round(ended),
            fetch_s=held_s - read_s,
            main_s=read_s,
        )
        return Pulse(
            worker=f"w:{number}", host="w", pid=number, version="", slots=SLOTS, lately=lately
        )


def _wait_s(queues: Sequence[Queue], slots: float) -> float:
    """How long pages wait for a slot, so that no more than `slots` are used. Found by bisection."""
    low, high = 0.0, 0.0

    def held(wait_s: float) -> float:
        return sum(queue.speed(wait_s) * queue.hold_s for queue in queues)

    if not slots or held(0.0) <= slots:
        return 0.0
    high = sum(queue.hold_s for queue in queues) / slots
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if held(middle) > slots else (low, middle)
    return high


def autoscaled(scene: Sequence[Arrival] = SCENE, most: int = MOST) -> Course:
    """The crawl with as many workers as the rule wants, at most `most`."""
    return SimulatedCrawl(scene, 0, Scaler(Bounds(max=most))).run()


def fixed(scene: Sequence[Arrival] = SCENE, workers: int = MOST) -> Course:
    """The crawl with a constant number of workers."""
    return SimulatedCrawl(scene, workers, None).run()


def just_enough(scene: Sequence[Arrival] = SCENE, most: int = MOST) -> Course:
    """The crawl with as many workers as hosts can keep busy, which come and go at once."""
    return SimulatedCrawl(scene, 0, Knowing(Bounds(max=most))).run()
