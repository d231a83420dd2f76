"""shoal proxies check: tries exits before a crawl does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec.structs import replace
from rich.table import Table

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, settings_from, with_settings
from shoal.config import CONFIG_FILE, Settings
from shoal.core.exits import ExitEntry
from shoal.core.pool_config import TABLES
from shoal.errors import ConfigError
from shoal.exits.check import Checked, check_all, is_local, own_address, routes_of
from shoal.exits.echo import LOOPBACK, echo_at
from shoal.exits.routes import Exits
from shoal.fetch import open_fetcher
from shoal.fetch.port import Route
from shoal.insight.figures import counted
from shoal.runtime import logs
from shoal.runtime.eventloop import run

SOME_BAD = 3

PoolOrFile = Annotated[
    str | None,
    typer.Argument(
        metavar="[POOL|FILE]", help="A [proxies.NAME] table, or a list. [default: all tables]"
    ),
]
EchoUrl = Annotated[
    str | None,
    typer.Option(
        "--echo",
        metavar="URL",
        envvar="SHOAL_PROXIES_ECHO",
        help="A server that tells where a request came from, such as `shoal proxies echo`.",
    ),
]
AtOnce = Annotated[
    int, typer.Option("--at-once", min=1, max=500, help="How many exits to try at a time.")
]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Try at most this many of each pool. [default: all]")
]


@with_settings("timeout_s", "allow_private", "user_agent")
@examples(
    "shoal proxies check proxies.txt --echo https://echo.example/",
    "shoal proxies check dc --json",
)
def check(
    options: dict[str, Any],
    pool: PoolOrFile = None,
    echo: EchoUrl = None,
    at_once: AtOnce = 20,
    limit: Limit = None,
    json: JsonFlag = False,
) -> None:
    """Try each exit of a pool, or of a list, once.

    It shows the address that the target saw, the time it took, whether the exit passes on our own
    address and, if the echo has https, whether it leaves the encryption alone. The country is shown
    only if the table or the list names it.

    The request goes to --echo, and to no server that you have not named. Without --echo, exits on
    this machine are tried with a local echo; other exits could not reach it.

    Exit codes: 0 all are good; 3 some are bad; 2 usage error.
    """
    settings = settings_from({**options, TABLES: pool})
    logs.configure(json_lines=settings.json_logs)
    checked = run(_check(_chosen(settings, pool), echo, at_once, limit))
    if json:
        display.print_json([{**_fields(each), "good": each.is_good} for each in checked])
    else:
        display.out().print(_checked_table(checked))
        good = [each for each in checked if each.is_good]
        seen = counted(len({each.seen for each in good}), "address", "addresses")
        display.say(f"{len(good):,} of {len(checked):,} are good; {seen} seen")
    raise typer.Exit(0 if all(each.is_good for each in checked) else SOME_BAD)


def _chosen(settings: Settings, pool: str | None) -> Settings:
    """The settings, with only the pools that were asked for."""
    pools = settings.proxy_pools
    if pool is None:
        if not pools:
            raise ConfigError(
                f"no pools: name a list, or write a [{TABLES}.NAME] table in {CONFIG_FILE}"
            )
        return settings
    if pool in pools:
        return replace(settings, proxy_pools={pool: pools[pool]})
    (source,) = pools[TABLES].sources
    if source.startswith("file:") and not Path(source.removeprefix("file:")).exists():
        there_are = ", ".join(name for name in pools if name != TABLES) or "none"
        raise ConfigError(f"neither a pool nor a file: {pool} (pools: {there_are})")
    return replace(settings, proxy_pools={TABLES: pools[TABLES]})


async def _check(
    settings: Settings, echo: str | None, at_once: int, limit: int | None
) -> list[Checked]:
    exits = await Exits.open(settings, strict=True)
    try:
        found = [
            pair for name in settings.proxy_pools for pair in routes_of(exits.pool(name), limit)
        ]
        if echo is not None:
            return await _tried(settings, found, echo, at_once)
        if not all(route.proxy is not None and is_local(route.proxy) for _, route in found):
            raise ConfigError(
                "--echo is missing: the address of a server that tells where requests come from"
                " (such as `shoal proxies echo` on your server)"
            )
        async with echo_at(LOOPBACK, 0) as own:
            return await _tried(replace(settings, allow_private=True), found, own, at_once)
    finally:
        await exits.close()


async def _tried(
    settings: Settings, found: list[tuple[ExitEntry, Route]], echo: str, at_once: int
) -> list[Checked]:
    fetcher = open_fetcher(settings)
    try:
        own = await own_address(fetcher, echo)
        if own is None:
            raise ConfigError("--echo: its answer does not tell where a request came from")
        with bars("exits", len(found)) as watch:
            return await check_all(
                fetcher, found, echo, own, at_once, lambda done: watch("tried", done)
            )
    finally:
        await fetcher.close()


def _fields(checked: Checked) -> dict[str, Any]:
    return {name: getattr(checked, name) for name in checked.__struct_fields__}


def _checked_table(checked: list[Checked]) -> Table:
    """A table without empty columns: names and addresses need the room."""
    names = ("exit", "address", "kind", "country", "seen as", "latency", "anonymity", "tls")
    rows = [_checked_row(each) for each in checked]
    kept = [at for at in range(len(names)) if any(row[at] for row in rows)]
    made = display.table(
        (*(names[at] for at in kept), "verdict"),
        [(*(row[at] for at in kept), row[-1]) for row in rows],
    )
    for column in made.columns[:-1]:
        column.no_wrap = True
    return made


def _checked_row(each: Checked) -> tuple[str, ...]:
    return (
        *(each.exit, each.address, each.kind, each.country, each.seen),
        "" if each.latency_ms is None else f"{each.latency_ms:,} ms",
        *(each.anonymity, each.tls, each.verdict),
    )
