"""What is told of a crawl, and in whose words."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from shoal.config import PublishFormat, Rules
from shoal.core.records import StoredItem
from shoal.core.task import Task
from shoal.errors import ConfigError
from shoal.feeds.formats import Wire, tasks_of
from shoal.frontier.values import CrawlState, Stats
from shoal.publish.events import (
    DETAIL_KEPT,
    ID_BYTES,
    REASON_KEPT,
    Event,
    identity_of,
    of_death,
    of_end,
    of_item,
)
from shoal.publish.formats import Format, enveloped
from shoal.publish.port import Channel


def item(**fields: Any) -> StoredItem:
    usual: dict[str, Any] = {
        "kind": "Product",
        "key": "sku-1",
        "data": b'{"sku":"sku-1","price":1.10,"_url":"mine"}',
        "url": "https://shop.example/p/1",
        "fingerprint": b"\x01" * 8,
        "scraped_at": 1_700_000_000.25,
    }
    return StoredItem(**usual | fields)


class TestEvents:
    def test_an_item_is_as_it_is_exported(self) -> None:
        event = of_item("shop", item())
        assert event.id == "shop:Product:sku-1:1700000000.250000"
        assert b'"price":1.10,' in event.body, "numbers are as they were written"
        assert json.loads(event.body) == {
            "sku": "sku-1",
            "price": 1.1,
            "_kind": "Product",
            "_key": "sku-1",
            "_url": "https://shop.example/p/1",
            "_scraped_at": "2023-11-14T22:13:20.250Z",
            "_type": "item",
            "_crawl": "shop",
            "_id": event.id,
        }

    def test_ids_stay_and_differ(self) -> None:
        assert of_item("shop", item()) == of_item("shop", item())
        others = {of_item("shop", item(**{name: value})).id for name, value in OTHERS.items()}
        assert len(others | {of_item("shop", item()).id, of_item("b", item()).id}) == 5

    @pytest.mark.parametrize("key", ["x" * 1000, "a\nb", "\x00", "\ud800", "ü" * 100])
    def test_ids_fit_into_headers(self, key: str) -> None:
        identity = identity_of("shop", "Product", key, 1.0)
        assert len(identity.encode()) <= ID_BYTES
        assert identity.isascii()
        assert identity.isprintable()
        assert identity == identity_of("shop", "Product", key, 1.0)
        assert identity != identity_of("shop", "Product", f"{key}.", 1.0)

    def test_text_that_no_encoding_holds(self) -> None:
        assert json.loads(of_item("shop", item(key="\ud800")).body)["_key"] == "\\ud800"

    def test_a_death_tells_no_secrets_and_not_everything(self) -> None:
        task = Task(
            url="https://shop.example/x",
            headers={"Authorization": "hush"},
            body="hush",
            meta={"token": "hush"},
        )
        event = of_death("shop", task, b"\x02" * 8, "r" * 10_000, "d" * 100_000 + "end", 2.0)
        told = json.loads(event.body)
        assert b"hush" not in event.body
        assert (len(told["reason"]), len(told["detail"])) == (REASON_KEPT, DETAIL_KEPT)
        assert told["detail"].endswith("end")
        assert event.id == "shop:dead:0202020202020202:2.000000"

    def test_the_end_has_all_counters(self) -> None:
        stats = Stats(
            crawl="shop",
            state=CrawlState.FINISHED,
            rules=Rules(),
            created_at=1.0,
            finished_at=3.0,
            done=7,
            dead=1,
        )
        event = of_end(stats)
        told = json.loads(event.body)
        assert (told["state"], told["counters"]["done"], told["counters"]["dead"]) == (
            "finished",
            7,
            1,
        )
        assert (event.channel, event.id) == (Channel.FINISHED, "shop:finished::3.000000")


OTHERS: dict[str, Any] = {"kind": "Offer", "key": "sku-2", "scraped_at": 1_700_000_000.250001}

TASK = Event(Channel.ITEMS, "shop:Product:1:1.0", b'{"url":"https://shop.example/1"}')


class TestFormats:
    @pytest.mark.parametrize("form", ["plain", "celery", "messenger"])
    def test_what_is_written_can_be_read(self, form: PublishFormat) -> None:
        """By `shoal feed`, with headers and without."""
        names = {} if form == "plain" else {Channel.ITEMS: "shoal.seed"}
        message = Format(form, names).message(TASK)
        expected = [Task(url="https://shop.example/1")]
        assert tasks_of(message.wire) == expected
        assert tasks_of(Wire(enveloped(message, "queue"))) == expected

    def test_celery_gets_one_argument_and_a_lasting_id(self) -> None:
        form = Format("celery", {})
        first, second = form.message(TASK), form.message(TASK)
        assert json.loads(first.wire.body)[:2] == [[{"url": "https://shop.example/1"}], {}]
        assert first.wire.headers["task"] == "shoal.item"
        assert first == second

    def test_names(self) -> None:
        form = Format("messenger", {Channel.ITEMS: "App\\Product", Channel.DEAD: None})
        kinds = {
            channel: form.message(Event(channel, "id", b"{}")).wire.headers["type"]
            for channel in Channel
        }
        assert kinds == {
            Channel.ITEMS: "App\\Product",
            Channel.DEAD: "App\\Message\\ShoalDead",
            Channel.FINISHED: "App\\Message\\ShoalFinished",
        }

    def test_a_name_for_what_has_none(self) -> None:
        with pytest.raises(ConfigError, match="needs a publish_format"):
            Format("plain", {Channel.ITEMS: "x"})

    def test_what_messenger_finds_in_a_stream(self) -> None:
        envelope = msgspec.json.decode(enveloped(Format("messenger", {}).message(TASK), "x"))
        assert envelope == {
            "body": TASK.body.decode(),
            "headers": {"type": "App\\Message\\ShoalItem", "Content-Type": "application/json"},
        }
