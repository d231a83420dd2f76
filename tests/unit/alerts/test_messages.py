"""What is said of alerts: nothing that a site, a worker or a crawl is called does more than name
it."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Any

import pytest

from shoal.alerts.messages import LONGEST, MOST, Notice, body_for, json_of, lines, text_of, title
from shoal.alerts.routes import Discord, Slack, Teams, Telegram, Webhook
from shoal.alerts.signing import signed_headers
from shoal.alerts.states import AlertState

HOSTILE = "<!channel> @everyone *b* [x](http://evil) <http://evil|good> &\n\x1b[31m\u202e"


def alert(state: str = "firing", **said: Any) -> AlertState:
    fields = {"alert": "stalled", "crawl": "shop", "text": "it hangs", "value": 1.0, "limit": 2.0}
    return AlertState(state=state, since=1.0, seen_at=2.0, **(fields | said))  # type: ignore[arg-type]


def notice(*alerts: AlertState) -> Notice:
    return Notice(alerts, 1_800_000_000.5, "host:1")


def test_it_says_what_fires_first() -> None:
    said = notice(alert("resolved", crawl="other"), alert(), alert(alert="no_leader", crawl=""))
    assert text_of(said).splitlines() == [
        "Shoal: 2 firing, 1 resolved",
        "FIRING stalled: shop: it hangs",
        "FIRING no_leader: it hangs",
        "RESOLVED stalled: other: it hangs",
    ]


def test_a_message_has_an_end() -> None:
    many = notice(*(alert(text="x" * 9999) for _ in range(MOST + 5)))
    assert len(lines(many)) == MOST + 1
    assert lines(many)[-1] == "and 5 more"
    assert all(len(line) <= LONGEST for line in lines(many))
    assert len(body_for(Discord(url="x"), many)["content"]) <= 2000
    assert len(body_for(Telegram(token="x", chat="1"), many)["text"]) <= 4096
    slack = body_for(Slack(url="x"), many)
    assert len(slack["text"]) <= 3000
    assert len(slack["blocks"][0]["text"]["text"]) <= 3000


def test_programs_get_all_of_it() -> None:
    said = json_of(notice(*(alert() for _ in range(MOST + 5))))
    assert len(said["alerts"]) == MOST + 5
    assert said["alerts"][0]["limit"] == 2.0
    assert body_for(Webhook(url="x"), notice(alert())) == json_of(notice(alert()))
    assert list(said) == ["version", "title", "at", "sender", "test", "alerts"]


def test_a_test_is_called_one() -> None:
    assert title(Notice([], 1.0, "host:1", is_test=True)) == "Shoal: this is a test"


def test_slack_mentions_nobody() -> None:
    body = body_for(Slack(url="x"), notice(alert(crawl=HOSTILE)))
    assert body["blocks"][0]["text"]["type"] == "plain_text"
    assert "<" not in body["text"]
    assert "&lt;!channel&gt;" in body["text"]
    assert "&amp;" in body["text"]


def test_discord_mentions_nobody() -> None:
    body = body_for(Discord(url="x"), notice(alert(crawl=HOSTILE)))
    assert body["allowed_mentions"] == {"parse": []}


def test_telegram_and_teams_show_text_as_it_is() -> None:
    said = notice(alert(crawl=HOSTILE))
    body = body_for(Telegram(token="x", chat="-100"), said)
    assert body["chat_id"] == "-100"
    assert "parse_mode" not in body
    (card,) = body_for(Teams(url="x"), said)["attachments"]
    blocks = card["content"]["body"]
    assert {block["type"] for block in blocks} == {"RichTextBlock"}
    assert blocks[1]["inlines"][0]["text"].startswith("FIRING stalled: <!channel>")


def test_a_name_breaks_no_line_and_moves_no_cursor() -> None:
    text = text_of(notice(alert(crawl=HOSTILE)))
    assert not {"\x1b", "\u202e"} & set(text)
    assert len(text.splitlines()) == 2


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        ("whsec_" + b64encode(b"k" * 24).decode(), b"k" * 24),
        ("hunter2", b"hunter2"),
        ("whsec_not base64!", b"whsec_not base64!"),
    ],
)
def test_signatures_are_those_of_standard_webhooks(secret: str, key: bytes) -> None:
    headers = signed_headers(secret, "msg_1", 1_800_000_000.7, b'{"a":1}')
    version, _, signature = headers["webhook-signature"].partition(",")
    expected = hmac.new(key, b'msg_1.1800000000.{"a":1}', sha256).digest()
    assert (version, b64decode(signature)) == ("v1", expected)
    assert headers["webhook-timestamp"] == "1800000000"


def test_without_a_secret_there_is_no_signature() -> None:
    assert signed_headers(None, "msg_1", 1.0, b"") == {
        "webhook-id": "msg_1",
        "webhook-timestamp": "1",
    }


def test_the_example_of_the_specification() -> None:
    """https://github.com/standard-webhooks/standard-webhooks: its libraries are tested with it."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    headers = signed_headers(
        secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
