"""shoal proxies: the exits of this project, and how they are doing."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

import typer
from rich.table import Table

from shoal.cli import display
from shoal.cli.commands.proxies_check import check
from shoal.cli.commands.simulate import simulate
from shoal.cli.examples import examples
from shoal.cli.options import (
    JsonFlag,
    existing_stores,
    show_help,
    with_settings,
)
from shoal.config import Settings
from shoal.core.exit_policy import score_at
from shoal.core.exits import Exit, PoolState
from shoal.core.identities import is_group
from shoal.errors import ConfigError
from shoal.exits.echo import LOOPBACK, echo_at
from shoal.frontier import frontier_at
from shoal.insight.exits import exit_state, exits_json
from shoal.insight.figures import counted, duration, size
from shoal.runtime import logs
from shoal.runtime.eventloop import run
from shoal.runtime.signals import stopped_by_signals

ECHO_PORT = 8089

app = typer.Typer(
    help="Exits: the proxies that requests go through.",
    callback=show_help,
    invoke_without_command=True,
)
app.command("check")(check)
app.command("simulate")(simulate)

SomePool = Annotated[
    str | None, typer.Argument(metavar="[POOL]", help="The pool's name. [default: all]")
]
Listen = Annotated[
    str, typer.Option(metavar="ADDRESS:PORT", help="Where to listen; port 0 is any free port.")
]


@app.command("list")
@with_settings("frontier")
@examples("shoal proxies list", "shoal proxies list dc --json")
def list_(options: dict[str, Any], pool: SomePool = None, json: JsonFlag = False) -> None:
    """List exits, and how they are doing.

    An exit is `ready`, `cooling` (blocked by some hosts, and not used there for a while) or `out`
    (unusable, or it forged certificates). The score is the share of its answers that were not
    blocks; old answers count less. The frontier does not know addresses, so exits have ids.
    """
    found = run(_list(existing_stores(options), pool))
    now = time.time()
    if json:
        display.print_json(exits_json(found, now))
        return
    if not found:
        display.say("no pools: no worker has brought any yet")
    for state, exits in found:
        display.out().print(_exits_table(state, exits, now))


@app.command()
@examples("shoal proxies echo --listen 127.0.0.1:8089")
def echo(listen: Listen = f"{LOOPBACK}:{ECHO_PORT}") -> None:
    """Serve an echo that tells where requests come from.

    `shoal proxies check --echo URL` needs one that the exits can reach. It speaks plain http; put a
    server with a certificate in front of it to see whether exits leave encryption alone. It runs
    until SIGTERM or Ctrl-C.
    """
    logs.configure(json_lines=False)
    run(_serve_echo(*_address(listen)))


async def _list(stores: Settings, pool: str | None) -> list[tuple[PoolState, list[Exit]]]:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        states = [each for each in await frontier.pools() if not is_group(each.rules.name)]
        if pool is not None:
            there_are = ", ".join(state.rules.name for state in states) or "none"
            states = [state for state in states if state.rules.name == pool]
            if not states:
                raise ConfigError(f"no pool {pool!r} here (there are: {there_are})")
        return [(state, await frontier.exits(state.rules.name)) for state in states]


def _exits_table(state: PoolState, exits: list[Exit], now: float) -> Table:
    columns = (
        *("exit", "kind", "country", "state", "score", "requests", "on the wire"),
        *("in flight", "cooling at", "out until"),
    )
    made = display.table(columns, [_exit_row(each, now) for each in exits])
    made.title = display.text(
        f"{state.rules.name}: {counted(state.exits, 'exit')}: {state.ready:,} ready,"
        f" {state.cooling:,} cooling, {state.out:,} out"
    )
    made.title_justify = "left"
    return made


def _exit_row(each: Exit, now: float) -> tuple[str, ...]:
    return (
        *(each.id, each.kind, each.country, exit_state(each, now)),
        f"{score_at(None, each, now):.0%}",
        f"{each.requests:,}",
        size(each.wire_bytes),
        f"{each.leased:,}",
        counted(each.cooling, "host") if each.cooling else "",
        f"in {duration(each.out_until - now)}" if each.out_until > now else "",
    )


class _EchoService:
    """An echo as a service that runs until it is told to stop."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        try:
            async with echo_at(*self._address) as url:
                display.say(f"{url} tells where a request came from")
                await self._stopped.wait()
        except OSError as error:
            raise ConfigError(f"--listen: {error.strerror or error}") from None

    def drain(self) -> None:
        self._stopped.set()


async def _serve_echo(host: str, port: int) -> None:
    service = _EchoService(host, port)
    with stopped_by_signals(service):
        await service.run()


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--listen: not an address and port: {listen!r} (write 127.0.0.1:8089)")
    return host.strip("[]"), int(port)
