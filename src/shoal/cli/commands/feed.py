"""shoal feed: adds tasks to a crawl from a queue that other programs fill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.live_line import live_line
from shoal.cli.options import CrawlName, JsonFlag, settings_from, with_settings
from shoal.config import Settings
from shoal.core.addresses import masked
from shoal.errors import StorageBusy, unreachable
from shoal.feeds import open_source
from shoal.feeds.feeder import Fed, Feeder
from shoal.feeds.noting import noted
from shoal.feeds.port import Source
from shoal.feeds.progress import progress_line, progress_logger
from shoal.frontier import frontier_at
from shoal.insight.json import fed_json
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.signals import stopped_by_signals

Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The queue: amqp://, sqs:// or redis://.")
]
UntilEmpty = Annotated[bool, typer.Option("--until-empty", help="Stop when the queue is empty.")]
Watch = Callable[[Fed], object]


@with_settings("frontier", "json_logs")
@examples(
    "shoal feed shop amqp://user:secret@rabbit/urls",
    "shoal feed shop sqs://eu-west-1/urls --until-empty",
    "shoal feed shop 'redis://queue-host?key=celery' --frontier redis://queue-host",
    "shoal feed shop 'redis://queue-host?key=messages&type=stream'",
)
def feed(
    crawl: CrawlName,
    address: Address,
    options: dict[str, Any],
    until_empty: UntilEmpty = False,
    json: JsonFlag = False,
) -> None:
    """Add tasks from a queue to a crawl.

    The queue is on RabbitMQ or SQS, or it is a list or a stream on Redis:

    \b
      amqp://user:secret@host/queue            amqp://host/vhost/queue
      sqs://region/queue                       redis://host?key=list
                                               redis://host?key=stream&type=stream

    A message is a URL, or a task as a JSON object with at least "url". Messages of Celery to the
    task shoal.seed are understood, and so are those of Symfony Messenger's JSON serializer.

    A message is removed from the queue when the frontier has its tasks, so a command that is killed
    loses nothing and adds nothing twice. A message that is not a task is moved, with the reason, to
    QUEUE.rejected (SQS: QUEUE-rejected, Redis: KEY:rejected). While the crawl is paused, nothing is
    taken. Any number of these commands may run. SIGTERM or Ctrl-C stops it after the messages in
    hand.
    """
    settings = settings_from(options)
    logs.configure(json_lines=settings.json_logs)
    began = time.monotonic()
    with _progress(crawl, quiet=settings.json_logs and json) as watch:
        fed = run(_feed(crawl, address, settings, until_empty=until_empty, watch=watch))
    if json:
        display.print_json(fed_json(crawl, fed, time.monotonic() - began))
    else:
        display.say(f"{crawl}: {fed.told} from {masked(address)}")


async def _feed(
    crawl: str, address: str, stores: Settings, *, until_empty: bool, watch: Watch
) -> Fed:
    source = open_source(address)
    try:
        await _check_reachable(source)
        async with frontier_at(stores.frontier, stores.state) as frontier:
            feeder = Feeder(source, frontier, crawl, until_empty=until_empty, watch=watch)
            async with noted(frontier.notes, crawl, address, feeder):
                with stopped_by_signals(feeder):
                    await feeder.run()
            return feeder.fed
    finally:
        await source.close()


async def _check_reachable(source: Source) -> None:
    """Raise ConfigError if the queue does not answer, before any work begins."""
    try:
        await source.waiting()
    except StorageBusy as error:
        raise unreachable(error) from None


@contextmanager
def _progress(crawl: str, *, quiet: bool) -> Iterator[Watch]:
    """Show the progress: a live line on a terminal, a log line now and then elsewhere."""
    console = display.console(stderr=True)
    if quiet:
        yield lambda fed: None
    elif display.is_live(console):
        with live_line(console) as draw:
            yield lambda fed: draw(display.text(progress_line(fed), "bold"))
    else:
        yield progress_logger(crawl, display.LOG_EVERY_S)
