"""shoal proxies simulate: compares ways to use a pool at a site that bans, without requests."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli import display
from shoal.cli.bars import bars
from shoal.cli.examples import examples
from shoal.cli.options import JsonFlag, settings_from, with_settings
from shoal.config import Settings
from shoal.core.exit_policy import tiers
from shoal.core.exits import PoolRules
from shoal.core.policy import parse_duration
from shoal.errors import ConfigError
from shoal.exits.chart import course
from shoal.exits.routes import Exits
from shoal.exits.scenes import STRATEGIES, Figures, PlayedPool, Scene
from shoal.exits.simulation import Watch
from shoal.exits.simulation import simulate as play
from shoal.insight.figures import counted, duration, size
from shoal.runtime.eventloop import run

PoolName = Annotated[
    str, typer.Argument(metavar="POOL", help="A pool of shoal.toml, or any name with --exits.")
]
Host = Annotated[str, typer.Option(metavar="HOST", help="The site, for the title.")]
Pages = Annotated[int, typer.Option(min=1, help="Pages to read.")]
ExitCount = Annotated[
    int | None, typer.Option(min=1, help="Exits in the pool. [default: as many as it has]")
]
BanAfter = Annotated[
    int, typer.Option(min=0, help="The site bans an exit after this many requests ...")
]
BanWithin = Annotated[str, typer.Option(metavar="TIME", help="... within this time ...")]
BanFor = Annotated[str, typer.Option(metavar="TIME", help="... for this long.")]
Latency = Annotated[float, typer.Option(min=0.001, help="Seconds that a response takes.")]
PageBytes = Annotated[int, typer.Option(min=0, help="Bytes per page on the wire, for the cost.")]
Rotation = Annotated[
    str | None,
    typer.Option(metavar="|".join(STRATEGIES), help="Only this strategy. [default: all]"),
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE.svg", help="Draw pages over time, as SVG.")
]


@with_settings("workers", "concurrency", "rate", "concurrency_per_host", "max_blocks")
@examples(
    "shoal proxies simulate dc --host shop.example --ban-after 40 --workers 5 --pages 10000",
    "shoal proxies simulate dc --exits 50 --ban-for 1h --plot plan.svg",
)
def simulate(
    pool: PoolName,
    options: dict[str, Any],
    host: Host = "site.example",
    pages: Pages = 10_000,
    exits: ExitCount = None,
    ban_after: BanAfter = 40,
    ban_within: BanWithin = "10m",
    ban_for: BanFor = "30m",
    latency: Latency = 0.5,
    page_bytes: PageBytes = 100_000,
    rotation: Rotation = None,
    plot: Plot = None,
    json: JsonFlag = False,
) -> None:
    """Compare ways to rotate at a site that bans exits.

    Nothing is sent. The real policy decides, on a simulated clock: hours pass in seconds. The site
    is made up: it bans an exit that sends too many requests, and does nothing else.
    """
    if rotation is not None and rotation not in STRATEGIES:
        raise ConfigError(f"--rotation {rotation!r}: must be one of {', '.join(STRATEGIES)}")
    settings = settings_from(options)
    scene = Scene(
        pools=run(_pools(settings, pool, exits)),
        host=host,
        pages=pages,
        workers=settings.workers,
        slots=settings.concurrency,
        rate=settings.rules.rate,
        room=settings.rules.concurrency_per_host,
        max_blocks=settings.rules.max_blocks,
        latency_s=latency,
        ban_after=ban_after,
        ban_within_s=parse_duration(ban_within),
        ban_for_s=parse_duration(ban_for),
        page_bytes=page_bytes,
    )
    with bars("pages by", pages) as watch:
        played = run(_play(scene, (rotation,) if rotation else STRATEGIES, watch))
    _show(scene, played, json=json)
    if plot is not None:
        _draw(scene, played, plot)


async def _play(scene: Scene, strategies: tuple[str, ...], watch: Watch) -> list[Figures]:
    return [await play(scene, strategy, watch) for strategy in strategies]


async def _pools(settings: Settings, name: str, exits: int | None) -> tuple[PlayedPool, ...]:
    """The pool and those that it may escalate to, from shoal.toml."""
    if name not in settings.proxy_pools:
        if exits is None:
            there_are = ", ".join(settings.proxy_pools) or "none"
            raise ConfigError(
                f"no pool {name!r} (there are: {there_are}); with --exits any name will do"
            )
        return (PlayedPool(PoolRules(name=name), exits),)
    opened = await Exits.open(settings)
    try:
        rules = {pool: opened.pool(pool).rules for pool in settings.proxy_pools}
        played = [PlayedPool(rules[at], len(opened.pool(at).exits)) for at in tiers(name, rules)]
    finally:
        await opened.close()
    if exits is not None:
        played[0] = PlayedPool(played[0].rules, exits)
    return tuple(played)


def _show(scene: Scene, played: list[Figures], *, json: bool) -> None:
    if json:
        display.print_json({"scene": scene, "strategies": played})
        return
    display.say(f"{_title(scene)}; {_note(scene)}")
    columns = (
        *("strategy", "time", "pages", "dead", "left", "requests", "blocked"),
        *("quarantines", "exits used", "busiest exit", "traffic", "cost"),
    )
    display.out().print(display.table(columns, map(_row, played)))


def _title(scene: Scene) -> str:
    first = scene.pools[0]
    exits = counted(first.exits, "exit")
    return f"{scene.pages:,} pages of {scene.host} by {exits} of {first.rules.name}"


def _note(scene: Scene) -> str:
    return (
        f"an exit is banned after {scene.ban_after:,} requests in"
        f" {duration(scene.ban_within_s)}, for {duration(scene.ban_for_s)}"
    )


def _row(figures: Figures) -> tuple[str, ...]:
    share = figures.blocked / max(figures.requests, 1)
    return (
        figures.strategy,
        duration(figures.seconds),
        f"{figures.done:,}",
        f"{figures.dead:,}",
        f"{figures.left:,}",
        f"{figures.requests:,}",
        f"{figures.blocked:,} ({share:.1%})",
        f"{figures.quarantines:,}",
        f"{figures.exits_used:,}",
        f"{figures.busiest_share:.1%}",
        size(figures.wire_bytes),
        f"{figures.cost:,.2f}",
    )


def _draw(scene: Scene, played: list[Figures], file: Path) -> None:
    try:
        file.write_text(course(_title(scene), _note(scene), played), "utf-8")
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    display.say(f"drawn: {file}", err=True)
