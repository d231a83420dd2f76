"""Writes messages in the formats that feeds/formats.py reads. Pure.

plain      JSON
celery     protocol 2, JSON: a task with one argument
messenger  Symfony's, as its JSON serializer writes: the header `type` names a class
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.config import PublishFormat
from shoal.errors import ConfigError
from shoal.feeds.formats import Wire
from shoal.publish.events import Event
from shoal.publish.port import Channel, Message

JSON = "application/json"
NAMES: Mapping[str, tuple[str, ...]] = {
    "celery": ("shoal.item", "shoal.dead", "shoal.finished"),
    "messenger": (
        "App\\Message\\ShoalItem",
        "App\\Message\\ShoalDead",
        "App\\Message\\ShoalFinished",
    ),
}
"""The default names of messages, for each channel."""


class Format:
    """Writes messages in one format. `names` are Celery's tasks or Messenger's classes by channel;
    None stands for the default."""

    def __init__(self, name: PublishFormat, names: Mapping[Channel, str | None]) -> None:
        self._write = {"plain": _plain, "celery": _celery, "messenger": _messenger}[name]
        given = [value for value in names.values() if value]
        if name == "plain" and given:
            raise ConfigError(f"plain messages have no name: {given[0]!r} needs a publish_format")
        usual = dict(zip(Channel, NAMES.get(name, ("", "", "")), strict=True))
        self._names = {channel: names.get(channel) or usual[channel] for channel in Channel}

    def message(self, event: Event) -> Message:
        """The message for an event."""
        wire = self._write(event, self._names[event.channel])
        return Message(event.channel, event.id, wire)


def _plain(event: Event, _: str) -> Wire:
    return Wire(event.body, {}, JSON)


def _celery(event: Event, task: str) -> Wire:
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, event.id))
    headers = {
        "lang": "py",
        "task": task,
        "id": identity,
        "root_id": identity,
        "retries": 0,
        "origin": "shoal",
        "argsrepr": f"('{event.id}',)",
        "kwargsrepr": "{}",
    }
    embed = b'{"callbacks":null,"errbacks":null,"chain":null,"chord":null}'
    return Wire(b"[[%b],{},%b]" % (event.body, embed), headers, JSON)


def _messenger(event: Event, kind: str) -> Wire:
    return Wire(event.body, {"type": kind, "Content-Type": JSON}, JSON)


def is_celery(wire: Wire) -> bool:
    """Whether a message is for Celery, which expects headers in an envelope, with the body, on all
    brokers but RabbitMQ."""
    return "task" in wire.headers


def enveloped(message: Message, place: str) -> bytes:
    """Put headers and body of a message into an envelope, for brokers without headers. `place` is
    the queue. A message without headers stays as it is."""
    wire = message.wire
    if not wire.headers:
        return wire.body
    envelope: dict[str, Any] = {"body": wire.body.decode(), "headers": dict(wire.headers)}
    if is_celery(wire):
        identity = wire.headers["id"]
        envelope |= {
            "content-type": wire.content_type,
            "content-encoding": "utf-8",
            "properties": {
                "correlation_id": identity,
                "delivery_mode": 2,
                "delivery_info": {"exchange": "", "routing_key": place},
                "priority": 0,
                "delivery_tag": str(uuid.uuid4()),
            },
        }
    return msgspec.json.encode(envelope)
