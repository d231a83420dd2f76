"""Writes the messages of alerts, in the format that each kind of route needs. Pure.

Names of crawls, hosts and workers may come from strangers. They must not mention everybody in a
chat, hide a link behind a word, or break a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.alerts.routes import Discord, Route, Slack, Teams, Telegram
from shoal.alerts.states import AlertState
from shoal.core import plaintext

Json = dict[str, Any]

MOST = 20
"""How many alerts one message lists. It only counts the others."""
LONGEST = 300
"""The most characters in a line."""
VERSION = 1
"""The version of the JSON that programs get."""


class Notice(msgspec.Struct, frozen=True):
    """The content of one message to one route."""

    alerts: Sequence[AlertState]
    at: float
    sender: str
    """The name of the leading coordinator."""
    is_test: bool = False


def title(notice: Notice) -> str:
    """The first line: how many alerts fire, and how many are resolved."""
    if notice.is_test:
        return "Shoal: this is a test"
    firing = sum(alert.state == "firing" for alert in notice.alerts)
    resolved = len(notice.alerts) - firing
    parts = [f"{firing} firing"] * bool(firing) + [f"{resolved} resolved"] * bool(resolved)
    return f"Shoal: {', '.join(parts)}"


def lines(notice: Notice) -> list[str]:
    """A line for each alert, those that fire first."""
    ordered = sorted(notice.alerts, key=lambda alert: alert.state != "firing")
    more = len(ordered) - MOST
    return [*map(line, ordered[:MOST]), *([f"and {more:,} more"] if more > 0 else [])]


def line(alert: AlertState) -> str:
    """One alert in one line."""
    state = "RESOLVED" if alert.state == "resolved" else "FIRING"
    about = f"{alert.crawl}: " if alert.crawl else ""
    text = plaintext.one_line(f"{state} {alert.alert}: {about}{alert.text}")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def text_of(notice: Notice) -> str:
    """The whole message as plain text."""
    return "\n".join([title(notice), *lines(notice)])


def json_of(notice: Notice) -> Json:
    """The message as JSON for programs: webhooks and commands."""
    return {
        "version": VERSION,
        "title": title(notice),
        "at": notice.at,
        "sender": notice.sender,
        "test": notice.is_test,
        "alerts": [alert_json(alert) for alert in notice.alerts],
    }


def alert_json(alert: AlertState) -> Json:
    """One alert as JSON, in messages and in the API."""
    return {
        "alert": alert.alert,
        "crawl": alert.crawl or None,
        "schedule": alert.schedule,
        "state": alert.state,
        "text": alert.text,
        "value": alert.value,
        "limit": alert.limit,
        "since": alert.since,
        "fired_at": alert.fired_at,
        "resolved_at": alert.resolved_at,
        "seen_at": alert.seen_at,
    }


def body_for(route: Route, notice: Notice) -> Json:
    """The JSON body to post to a route."""
    match route:
        case Slack():
            return _slack(notice)
        case Teams():
            return _teams(notice)
        case Discord():
            # The text is at most 6,600 characters; a message may have 2,000.
            return {"content": _cut(text_of(notice), 2000), "allowed_mentions": {"parse": []}}
        case Telegram():
            # Without a parse_mode it is plain text.
            return {
                "chat_id": route.chat,
                "text": _cut(text_of(notice), 4096),
                "link_preview_options": {"is_disabled": True},
            }
        case _:
            return json_of(notice)


def _slack(notice: Notice) -> Json:
    """A block of plain text, in which Slack reads no mentions or links. The fallback `text` is
    always markup, so its three special characters are escaped."""
    escaped = text_of(notice).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = {"type": "plain_text", "text": _cut(text_of(notice), 3000), "emoji": False}
    return {
        "text": _cut(escaped, 3000),
        "blocks": [{"type": "section", "text": plain}],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _teams(notice: Notice) -> Json:
    """An adaptive card. Text runs of a rich text block are shown as they are, without markup."""
    return {
        "type": "message",
        "attachments": [
            {
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": {
                    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "type": "AdaptiveCard",
                    "version": "1.4",
                    "body": [
                        _teams_text(title(notice), weight="Bolder"),
                        *map(_teams_text, lines(notice)),
                    ],
                },
            }
        ],
    }


def _teams_text(text: str, **style: str) -> Json:
    return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **style}]}


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
