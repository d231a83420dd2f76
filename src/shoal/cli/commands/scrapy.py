"""shoal scrapy: commands for Scrapy projects, besides the crawl itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, settings_from, show_help, with_settings
from shoal.config import Settings
from shoal.errors import ConfigError, MissingExtra
from shoal.frontier import frontier_at
from shoal.insight.figures import counted
from shoal.runtime.eventloop import run

if TYPE_CHECKING:  # It needs the extras `scrapy` and `redis`.
    from shoal.scrapy.migration.migrate import Migrated

SpiderName = Annotated[str, typer.Argument(metavar="SPIDER", help="The spider's name.")]
From = Annotated[
    str, typer.Option("--from", metavar="URL", help="The Redis of scrapy-redis: redis://host/0.")
]
QueueKey = Annotated[str, typer.Option(help="SCHEDULER_QUEUE_KEY of the project.")]
DupefilterKey = Annotated[str, typer.Option(help="SCHEDULER_DUPEFILTER_KEY of the project.")]
Keep = Annotated[bool, typer.Option("--keep", help="Copy everything instead of moving it.")]

app = typer.Typer(
    help="Migrate crawls from scrapy-redis.",
    callback=show_help,
    invoke_without_command=True,
)


@app.command()
@with_settings("frontier", "name")
@examples(
    "shoal scrapy migrate shop --from redis://old --frontier redis://new",
    "shoal scrapy migrate shop --from redis://old/2 --name sale --keep",
)
def migrate(
    spider: SpiderName,
    source: From,
    options: dict[str, Any],
    queue_key: QueueKey = "%(spider)s:requests",
    dupefilter_key: DupefilterKey = "%(spider)s:dupefilter",
    keep: Keep = False,
    json: JsonFlag = False,
) -> None:
    """Move what scrapy-redis holds into a frontier.

    Stop the workers of scrapy-redis first. Requests are read without running pickled code or the
    project's code. Each is removed from the old queue once the frontier has it: to continue a
    migration that was stopped, run it again. Requests that cannot be read stay where they are, and
    the exit code is 3. The crawl gets the spider's name, unless you give --name.
    """
    settings = settings_from(options)
    keys = [_named(key, spider) for key in (queue_key, dupefilter_key)]
    crawl = settings.name or spider
    done = run(_migrate(source, keys, settings, crawl, keep=keep))
    if json:
        display.print_json(done)
    else:
        _show(done, crawl, keys[0])
    raise typer.Exit(3 if done.unreadable else 0)


def _named(key: str, spider: str) -> str:
    try:
        return key % {"spider": spider}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"not a key: {key!r} (write the spider as %(spider)s)") from None


async def _migrate(
    source: str, key_names: list[str], settings: Settings, crawl: str, *, keep: bool
) -> Migrated:
    try:
        from shoal.scrapy.migration.migrate import Migration
        from shoal.scrapy.migration.oldqueue import OldKeys
    except ModuleNotFoundError as error:
        if error.name != "redis":
            raise
        raise MissingExtra("shoal scrapy migrate", "redis") from None
    keys = OldKeys(source, *key_names)
    try:
        async with frontier_at(settings.frontier, settings.state) as target:
            return await Migration(keys, target, crawl, keep=keep, progress=bars).run()
    finally:
        await keys.close()


def _show(done: Migrated, crawl: str, queue_key: str) -> None:
    requests = counted(done.requests, "request")
    seen = counted(done.fingerprints, "fingerprint")
    display.say(f"{crawl}: {requests} and {seen} moved, {done.duplicates:,} known already")
    if done.fingerprinter:
        for line in _advice(done.fingerprinter):
            display.say(line)
    if done.unreadable:
        display.say(
            f"{done.unreadable:,} could not be read, and are still in {queue_key}:", err=True
        )
    for reason, count in done.reasons.items():
        display.say(f"    {count:,} x {reason}", err=True)


def _advice(fingerprinter: str) -> list[str]:
    from shoal.scrapy.migration.migrate import UNKNOWN

    if fingerprinter == UNKNOWN:
        return [
            "The dupefilter has fingerprints of the project's own kind: pages that were seen are"
            " fetched again unless REQUEST_FINGERPRINTER_CLASS makes the same ones."
        ]
    if fingerprinter.startswith("scrapy."):
        return ["The dupefilter has Scrapy's own fingerprints: the project needs no other setting."]
    return [
        "Pages that were seen are fetched again unless the project's settings say:",
        f'REQUEST_FINGERPRINTER_CLASS = "{fingerprinter}"',
    ]
