"""shoal drain: moves results from a stream to a store."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.live_line import live_line
from shoal.cli.options import JsonFlag, settings_from, with_settings
from shoal.core.addresses import masked
from shoal.errors import ConfigError
from shoal.insight.figures import counted
from shoal.insight.json import delivered_json
from shoal.results import open_queue, results_at
from shoal.results.delivery import Delivered, Deliverer
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.signals import stopped_by_signals

SPEED_OVER_S = 5.0

Target = Annotated[
    str, typer.Option("--to", metavar="URL", help="The store to fill: postgresql://, sqlite:///.")
]
UntilEmpty = Annotated[bool, typer.Option("--until-empty", help="Stop when the stream is empty.")]
Watch = Callable[[Delivered], object]

log = logging.getLogger("shoal")


@with_settings("results", "json_logs")
@examples(
    "shoal crawl spider.py --results redis-stream://localhost",
    "shoal drain --results redis-stream://localhost --to postgresql://localhost/shop",
    "shoal drain --results redis-stream://localhost --to sqlite:///shop.db --until-empty",
)
def drain(
    to: Target, options: dict[str, Any], until_empty: UntilEmpty = False, json: JsonFlag = False
) -> None:
    """Move results from a Redis stream to a store.

    Workers with --results redis-stream://... put batches into the stream, and wait when there are
    too many. Any number of these commands may run. Each removes a batch from the stream once the
    store has it, and takes over the batches of a dead one. SIGTERM or Ctrl-C stops it after the
    batch in hand.
    """
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    began = time.monotonic()
    with _progress(quiet=settings.json_logs and json) as watch:
        delivered = run(_drain(settings.results, to, until_empty=until_empty, watch=watch))
    if json:
        display.print_json(delivered_json(delivered, time.monotonic() - began))
    else:
        display.say(f"{_counts(delivered)} are in {masked(to)}; {delivered.waiting:,} batches wait")


async def _drain(stream: str, to: str, *, until_empty: bool, watch: Watch) -> Delivered:
    queue = open_queue(stream)
    try:
        await queue.check()
        async with results_at(to) as store:
            if not store.readable:
                raise ConfigError(
                    f"--to {masked(to)}: a stream is not a store (shoal drain --help)"
                )
            deliverer = Deliverer(queue, store, until_empty=until_empty, watch=watch)
            with stopped_by_signals(deliverer):
                await deliverer.run()
            return deliverer.delivered
    finally:
        await queue.close()


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Watch]:
    """Show the progress: a live line on a terminal, a log line now and then elsewhere."""
    console = display.console(stderr=True)
    speed = _Speed()
    if quiet:
        yield lambda delivered: None
    elif display.is_live(console):
        with live_line(console) as draw:
            yield lambda delivered: draw(display.text(_line(delivered, speed), "bold"))
    else:
        yield _logging(speed)


def _logging(speed: _Speed) -> Watch:
    """Log a line now and then, but do not repeat it for days if nothing comes."""
    timer, logged = display.log_timer(), 0

    def watch(delivered: Delivered) -> None:
        nonlocal logged
        line = _line(delivered, speed)
        if delivered.batches != logged and timer.is_due():
            logged = delivered.batches
            log.info(line)

    return watch


def _line(delivered: Delivered, speed: _Speed) -> str:
    per_s = speed.after(delivered.pages + delivered.items + delivered.rejected)
    return f"{delivered.waiting:,} batches wait · {_counts(delivered)} written · {per_s:,.0f}/s"


def _counts(delivered: Delivered) -> str:
    return f"{counted(delivered.pages, 'page')} and {counted(delivered.items, 'item')}"


class _Speed:
    """Records per second, over the last few seconds."""

    def __init__(self) -> None:
        self._marks = deque([(time.monotonic(), 0)])

    def after(self, records: int) -> float:
        now = time.monotonic()
        self._marks.append((now, records))
        while now - self._marks[0][0] > SPEED_OVER_S and len(self._marks) > 2:
            self._marks.popleft()
        since, before = self._marks[0]
        return (records - before) / max(now - since, 0.001)
