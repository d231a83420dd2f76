"""`python -m benchmarks.advise_shapes`: compares forecasts with how long crawls really took.

Six shapes of crawls, each with another bottleneck. After a third of the pages, the time to the end
is forecast; then the crawl goes on unchanged, and its real time is measured. Hosts, Redis and
PostgreSQL are real and run on this machine, which should have nothing else to do.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext

import asyncpg
import msgspec
from rich.table import Table

from benchmarks.advise_spider import Shaped, Work
from benchmarks.postgres_server import postgres_server
from benchmarks.redis_server import RedisServer, redis_server
from benchmarks.report import keep, wide_console
from benchmarks.slow_server import slow_hosts
from shoal.errors import UnknownCrawl
from shoal.frontier import frontier_at
from shoal.frontier.port import QueriesAndNotes
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.advise.advice import advice
from shoal.insight.advise.look import look_at
from shoal.insight.advise.model import Limit
from shoal.insight.advise.situation import ENOUGH_PAGES, situation
from shoal.insight.figures import duration
from shoal.results import results_at
from shoal.runtime.eventloop import run

AIM = 0.15
LOOK_EVERY_S = 0.1
LOOK_BACK_S = 3.0
ROW_S = 0.005
"""How long the slow PostgreSQL takes for each row."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of crawl with a known bottleneck."""

    name: str
    limits: tuple[Limit, ...]
    """The bottlenecks that are correct answers after a third of the crawl."""
    hosts: int
    delay_s: float
    work: Callable[[Sequence[str]], Work]
    options: dict[str, str]
    is_postgres: bool = False


class Run(msgspec.Struct, kw_only=True):
    """A forecast, and how long the crawl really took."""

    forecast_s: float
    took_s: float
    limit: str
    per_s: float
    workers_enough: int
    pages: int

    @property
    def off(self) -> float:
        """How far the forecast was off: -0.1 if it was a tenth too short."""
        return self.forecast_s / self.took_s - 1


def shapes(seconds: float) -> list[Shape]:
    """All shapes, for crawls that take about `seconds`."""

    def even(pages: float) -> Callable[[Sequence[str]], Work]:
        return lambda hosts: Work({host: int(pages) for host in hosts})

    def hot(hosts: Sequence[str]) -> Work:
        return Work(
            {host: int(seconds * (4.5 if not at else 0.6)) for at, host in enumerate(hosts)}
        )

    def zipf(hosts: Sequence[str]) -> Work:
        return Work({host: int(seconds * 1.8 / (1 + at)) + 1 for at, host in enumerate(hosts)})

    def chains(hosts: Sequence[str]) -> Work:
        per_s = 7  # Pages per second of one chain: each begins after the visit before it.
        return Work(
            dict.fromkeys(hosts, 1), [int(seconds * per_s / (1 + at / 6)) for at in range(12)]
        )

    return [
        Shape(
            name="rate",
            limits=(Limit.HOSTS,),
            hosts=20,
            delay_s=0.05,
            work=even(seconds * 4.5),
            options={"rate": "5/s"},
        ),
        Shape(
            name="one hot host",
            limits=(Limit.HOSTS,),
            hosts=10,
            delay_s=0.05,
            work=hot,
            options={"rate": "5/s"},
        ),
        Shape(
            name="Zipf",
            limits=(Limit.HOSTS, Limit.SLOTS),
            hosts=60,
            delay_s=0.4,
            work=zipf,
            options={"rate": "2/s", "workers": "2", "concurrency": "4"},
        ),
        Shape(
            name="CPU-bound spider",
            limits=(Limit.CPU,),
            hosts=4,
            delay_s=0.02,
            work=lambda hosts: Work({host: int(seconds * 12) for host in hosts}, read_s=0.02),
            options={"rate": "none"},
        ),
        Shape(
            name="slow PostgreSQL",
            limits=(Limit.STORES,),
            hosts=10,
            delay_s=0.02,
            work=even(seconds * 17),
            options={"rate": "none"},
            is_postgres=True,
        ),
        Shape(
            name="chains",
            limits=(Limit.CHAINS,),
            hosts=4,
            delay_s=0.1,
            work=chains,
            options={"rate": "none"},
        ),
    ]


def crawl(shape: Shape, redis: RedisServer) -> Run:
    """Run a crawl of this shape to its end."""
    redis.empty()
    with (
        slow_hosts(shape.hosts, shape.delay_s) as hosts,
        tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder,
        postgres_server() if shape.is_postgres else nullcontext("") as postgres,
    ):
        work = shape.work([f"http://127.0.0.1:{port}" for port in hosts.ports])
        results = postgres or f"sqlite:///{folder}/results.db"
        if postgres:
            asyncio.run(_slow_down(postgres))
        with _crawling(shape, work, redis.address, results) as process:
            pages = sum(work.chains) or sum(work.hosts.values())
            return run(_watch(redis.address, pages, process))


@contextmanager
def _crawling(
    shape: Shape, work: Work, frontier: str, results: str
) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "shoal", "crawl", "benchmarks.advise_spider:Shaped"]
    command += ["--frontier", frontier, "--results", results, "--allow-private"]
    command += ["--json", "--json-logs"]  # These also turn off the display of progress.
    command += [part for name, value in shape.options.items() for part in (f"--{name}", value)]
    env = {**os.environ, "SHOAL_BENCH_SHAPE": msgspec.json.encode(work).decode()}
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def _slow_down(address: str) -> None:
    """Make PostgreSQL sleep for each inserted item."""
    async with results_at(address) as results:
        await results.count("nothing")  # Creates the tables.
    connection = await asyncpg.connect(address)
    await connection.execute(
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN PERFORM pg_sleep({ROW_S}); RETURN NEW; END $$;"
        "CREATE TRIGGER dawdle BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION dawdle()"
    )
    await connection.close()


async def _watch(address: str, pages: int, process: subprocess.Popen[bytes]) -> Run:
    async with frontier_at(address) as frontier:
        await _until(frontier, process, lambda stats: stats.added >= pages)
        enough = max(pages / 3, ENOUGH_PAGES)
        await _until(frontier, process, lambda stats: stats.ended >= enough)
        before = await look_at(frontier, Shaped.name, time.time())
        await asyncio.sleep(LOOK_BACK_S)
        look = await look_at(frontier, Shaped.name, time.time())
        said = advice(situation(look, before))
        if said.advised is None:
            raise SystemExit(f"benchmarks: nothing is advised: {said.readiness}")
        forecast = said.advised.now.forecast
        ended = await _until(frontier, process, lambda stats: stats.state is CrawlState.FINISHED)
    return Run(
        forecast_s=forecast.seconds,
        took_s=(ended.finished_at or 0.0) - look.at,
        limit=forecast.limit,
        per_s=forecast.per_s,
        workers_enough=said.advised.enough.forecast.plan.workers,
        pages=pages,
    )


async def _until(
    frontier: QueriesAndNotes, process: subprocess.Popen[bytes], is_so: Callable[[Stats], bool]
) -> Stats:
    while True:
        try:
            stats = await frontier.stats(Shaped.name)
        except UnknownCrawl:
            pass
        else:
            if is_so(stats):
                return stats
            if process.poll() is not None:
                raise SystemExit(f"benchmarks: the crawl ended with code {process.returncode}")
        await asyncio.sleep(LOOK_EVERY_S)


def table(runs: dict[str, list[Run]]) -> Table:
    """All forecasts beside the real times, with the error of each."""
    found = Table(
        *("shape", "pages", "limit", "forecast", "took", "off", "workers enough"),
        title=f"after a third of a crawl (aim: within {AIM:.0%})",
    )
    for name, own in runs.items():
        for one in own:
            found.add_row(
                name,
                f"{one.pages:,}",
                one.limit,
                duration(one.forecast_s),
                duration(one.took_s),
                f"{one.off:+.1%}",
                f"{one.workers_enough}",
            )
    return found


def main() -> None:
    """Measure, print, keep the raw figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.advise_shapes", description=__doc__)
    parser.add_argument("--seconds", type=float, default=90.0, help="that a crawl takes, about")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", help="the shapes whose names have this in them")
    args = parser.parse_args()
    console, runs = wide_console(), dict[str, list[Run]]()
    with redis_server() as redis:
        for _ in range(args.rounds):
            for shape in shapes(args.seconds):
                if args.only and args.only not in shape.name:
                    continue
                one = crawl(shape, redis)
                runs.setdefault(shape.name, []).append(one)
                is_named = one.limit in shape.limits
                console.print(
                    f"{shape.name}: {duration(one.forecast_s)} forecast,"
                    f" {duration(one.took_s)} taken, {one.off:+.1%};"
                    f" {one.limit}{'' if is_named else ' (wrong)'}"
                )
    made = table(runs)
    console.print(made)
    console.print(f"raw figures: {keep('advise-shapes', msgspec.to_builtins(runs), made)}")
    worst = max(abs(one.off) for own in runs.values() for one in own)
    raise SystemExit(f"off by {worst:.1%}, more than {AIM:.0%}" if worst > AIM else 0)


if __name__ == "__main__":
    main()
