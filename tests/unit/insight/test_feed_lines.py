"""What feeds a crawl, in a line each."""

from __future__ import annotations

from shoal.config import Rules
from shoal.frontier.feeding import FeedPulse
from shoal.frontier.values import CrawlState, Stats
from shoal.insight.feed_lines import SHOWN, feed_lines
from shoal.insight.status import Snapshot

FEED = FeedPulse(crawl="shop", address="amqp://u:***@h/urls", at=100.0)


def lines(*feeds: FeedPulse) -> list[str]:
    stats = Stats(crawl="shop", state=CrawlState.RUNNING, rules=Rules(), created_at=0.0)
    empty = Snapshot(stats=stats, workers=[], busiest=[], slowest=[], failing=[])
    empty.feeds = list(feeds)
    return list(feed_lines(empty, 130.0))


def test_none() -> None:
    assert lines() == []


def test_what_it_has_brought_and_why_it_takes_nothing() -> None:
    busy = FeedPulse(
        crawl="shop",
        address="redis://h?key=q",
        at=100.0,
        added=1234,
        rejected=2,
        waiting=7,
        last_at=110.0,
        held_up="the crawl is paused",
    )
    assert lines(FEED, busy) == [
        "feed amqp://u:***@h/urls: 0 added · 0 rejected · 0 wait",
        "feed redis://h?key=q: 1,234 added · 2 rejected · 7 wait · last message 20s ago"
        " · takes nothing: the crawl is paused",
    ]


def test_not_more_than_fit() -> None:
    assert lines(*[FEED] * (SHOWN + 2))[-1] == "and 2 more feeds"
