"""Reads tasks from messages in these formats. Pure.

    plain      a URL, or a task as a JSON object
    Celery     protocol 2, JSON: the task `shoal.seed` with URLs or tasks as its arguments
    Messenger  Symfony's, with its JSON serializer: an object with the fields of a task
    dead       a plain message or Messenger's in which `--publish` tells of a dead task, moved back

Pickled and PHP-serialised messages are refused unread: reading one may run any code that its sender
has put into it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from shoal.core.task import Task
from shoal.errors import BadUrl
from shoal.seeds.seeding import read_seed

MOST_BYTES = 2**20
MOST_TASKS = 10_000
"""The maximum number of tasks in one message."""
CELERY_TASK = "shoal.seed"

_PICKLED = "it is pickled, which is never read here: set task_serializer = 'json' in Celery"
_PHP = (
    "it is PHP-serialised, which is never read here: set the transport's serializer to"
    " messenger.transport.symfony_serializer"
)
_DEAD = 'it says that a task is dead: add "retry": true to have that tried again'
_PHP_STRING = re.compile(rb's:[0-9]{1,9}:"(.*)";', re.S)
_PHP_OBJECT = re.compile(rb'\s*(?:O:[0-9]+:|a:[0-9]+:\{|s:[0-9]+:"O:)')


class BadMessage(BadUrl):
    """A message cannot be read as tasks. The text says why."""


class DeadTask(Task, forbid_unknown_fields=False):
    """A dead task as `--publish` describes it: without headers, body, session and meta."""

    fingerprint: str


class Wire(msgspec.Struct, frozen=True):
    """A message as it is sent over a broker."""

    body: bytes
    headers: Mapping[str, Any] = {}
    content_type: str = ""


def tasks_of(wire: Wire) -> list[Task]:
    """The tasks that a message asks for. Raises BadMessage."""
    if len(wire.body) > MOST_BYTES:
        raise BadMessage(f"it is longer than {MOST_BYTES} bytes")
    _refuse_code(wire)
    if (name := wire.headers.get("task")) is not None:
        return _of_celery(wire.body, name)
    if wire.headers.get("type") is not None:
        return [_of_messenger(wire.body)]
    if (inner := _envelope(wire.body)) is not None:
        return tasks_of(inner)
    return [_task(wire.body)]


def _refuse_code(wire: Wire) -> None:
    kind = str(wire.content_type or wire.headers.get("content-type") or "")
    if "python-serialize" in kind or wire.body.startswith(b"\x80"):
        raise BadMessage(_PICKLED)
    if _PHP_OBJECT.match(wire.body):
        raise BadMessage(_PHP)


def _envelope(body: bytes) -> Wire | None:
    """The message inside an envelope: for brokers without headers, a sender puts headers and body
    into one JSON object. None if `body` is not an envelope."""
    for text in (body, _from_php_string(body), _from_base64(body)):
        if text is None or not text.lstrip().startswith(b"{"):
            continue
        content = _json(text)
        headers = content.get("headers") if isinstance(content, dict) else None
        if headers == []:  # PHP writes an empty object like this.
            headers = {}
        if isinstance(headers, dict):
            return _inner(content, headers)
    return None


def _inner(content: dict[str, Any], headers: dict[str, Any]) -> Wire | None:
    """The message inside an envelope of Celery or Messenger. None if it is a plain task, whose
    headers are those of its request. Raises BadMessage."""
    body = content.get("body")
    if not isinstance(body, str) or "url" in content:
        return None
    data = body.encode()
    properties = content.get("properties")
    if isinstance(properties, dict) and properties.get("body_encoding") == "base64":
        decoded = _from_base64(data)
        if decoded is None:
            raise BadMessage("its body is not base64")
        data = decoded
    if not {"task", "type"} & headers.keys():
        _refuse_code(Wire(data.replace(b'\\"', b'"'), headers))
        raise BadMessage("its headers name no task of Celery's and no type of Messenger's")
    return Wire(data, headers, str(content.get("content-type") or ""))


def _of_celery(body: bytes, name: object) -> list[Task]:
    if name != CELERY_TASK:
        raise BadMessage(f"it is for the task {str(name)[:100]!r}, not for {CELERY_TASK!r}")
    content = _json(body)
    if not (isinstance(content, list) and len(content) == 3):
        raise BadMessage("it is not [args, kwargs, embed], as Celery's protocol 2 has it")
    args, kwargs, _ = content
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise BadMessage("its args are no list, or its kwargs no object")
    tasks = list[Task]()
    for wanted in _flat([*args, *([kwargs] if kwargs else [])]):
        tasks.append(_converted(wanted))
        if len(tasks) > MOST_TASKS:
            raise BadMessage(f"it has more than {MOST_TASKS} tasks")
    if not tasks:
        raise BadMessage("it has no arguments: give URLs or tasks")
    return tasks


def _flat(wanted: list[Any]) -> Iterator[Any]:
    """The arguments, with lists replaced by their elements."""
    for each in wanted:
        if isinstance(each, list):
            yield from each
        else:
            yield each


def _of_messenger(body: bytes) -> Task:
    content = _json(body)
    if not isinstance(content, dict):
        raise BadMessage("it is no JSON object")
    # Properties of a PHP object that are not set are null.
    return _converted({name: value for name, value in content.items() if value is not None})


def _converted(wanted: Any) -> Task:
    if isinstance(wanted, str):
        return Task(url=wanted.strip())
    if not isinstance(wanted, dict):
        raise BadMessage(f"neither a URL nor a task: {str(wanted)[:60]!r}")
    is_dead = wanted.get("_type") == "dead"
    try:
        task = msgspec.convert(wanted, DeadTask if is_dead else Task)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadMessage(str(error)) from None
    if is_dead:
        if not task.retry:
            raise BadMessage(_DEAD)
        task.retry_count = 0
    return task


def _task(body: bytes) -> Task:
    if b'"_type"' in body and body.lstrip().startswith(b"{"):
        return _converted(_json(body))
    try:
        return read_seed(body)
    except BadUrl as error:
        raise BadMessage(str(error)) from None


def _json(text: bytes) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadMessage(f"it is no JSON: {error}") from None


def _from_php_string(body: bytes) -> bytes | None:
    """The text inside PHP's `s:12:"...";`, in which PHP's Redis clients wrap what they store. None
    if it is not wrapped."""
    match = _PHP_STRING.fullmatch(body.strip())
    return match[1] if match else None


def _from_base64(body: bytes) -> bytes | None:
    try:
        return base64.b64decode(body.strip(), validate=True)
    except (binascii.Error, ValueError):
        return None
