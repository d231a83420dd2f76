"""shoal pause, resume, cancel."""

from __future__ import annotations

from typing import Any

from shoal.cli import display
from shoal.cli.options import CrawlName, existing_stores, with_settings
from shoal.frontier import frontier_at
from shoal.frontier.values import Control, CrawlState
from shoal.runtime.eventloop import run


@with_settings("frontier")
def pause(crawl: CrawlName, options: dict[str, Any]) -> None:
    """Hand out no more work. What is in flight is finished; workers wait."""
    _tell(crawl, Control.PAUSE, options)


@with_settings("frontier")
def resume(crawl: CrawlName, options: dict[str, Any]) -> None:
    """Go on after a pause."""
    _tell(crawl, Control.RESUME, options)


@with_settings("frontier")
def cancel(crawl: CrawlName, options: dict[str, Any]) -> None:
    """End a crawl: all that is not done is dropped. What was stored stays."""
    _tell(crawl, Control.CANCEL, options)


def _tell(crawl: str, action: Control, options: dict[str, Any]) -> None:
    state = run(_control(existing_stores(options).frontier, crawl, action))
    display.say(f"{crawl}: {state}")


async def _control(address: str, crawl: str, action: Control) -> CrawlState:
    async with frontier_at(address) as frontier:
        return await frontier.control(crawl, action)
