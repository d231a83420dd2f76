"""shoal pause, resume, cancel."""

from __future__ import annotations

from typing import Any

from shoal.cli import display
from shoal.cli.examples import examples
from shoal.cli.options import CrawlName, existing_stores, with_settings
from shoal.config import Settings
from shoal.frontier import frontier_at
from shoal.frontier.events import STEERED, note_event
from shoal.frontier.values import Control, CrawlState
from shoal.runtime.eventloop import run


@with_settings("frontier")
@examples("shoal pause shop")
def pause(crawl: CrawlName, options: dict[str, Any]) -> None:
    """Pause a crawl. Requests in flight are finished; then workers wait until `shoal resume`."""
    _steer(crawl, Control.PAUSE, options)


@with_settings("frontier")
@examples("shoal resume shop")
def resume(crawl: CrawlName, options: dict[str, Any]) -> None:
    """Resume a crawl that was paused."""
    _steer(crawl, Control.RESUME, options)


@with_settings("frontier")
@examples("shoal cancel shop")
def cancel(crawl: CrawlName, options: dict[str, Any]) -> None:
    """Cancel a crawl: drop what is not done. What was stored stays."""
    _steer(crawl, Control.CANCEL, options)


def _steer(crawl: str, action: Control, options: dict[str, Any]) -> None:
    state = run(_control(existing_stores(options), crawl, action))
    display.say(f"{crawl}: {state}")


async def _control(stores: Settings, crawl: str, action: Control) -> CrawlState:
    async with frontier_at(stores.frontier, stores.state) as frontier:
        state = await frontier.control(crawl, action)
        await note_event(frontier.notes, crawl, STEERED[action], by="command")
        return state
