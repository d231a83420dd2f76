"""A request just before it leaves, as the hook `request` may still change it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from shoal.core.task import Task, bad_body
from shoal.core.urls import parse


class Outgoing:
    """What is about to be sent for a task. Nothing of what changes here is kept: a task is known by
    what it was before, and its next try begins with that."""

    __slots__ = ("body", "headers", "task", "url")

    def __init__(self, task: Task) -> None:
        self.task = task
        """Whose request it is. For looking at."""
        self.url = task.url
        """The path and the query may change; scheme, host and port may not."""
        self.headers = dict(task.headers)
        """Beside those that every request has, and in place of them: `User-Agent`."""
        self.body = task.body
        """Text, or None. Of a task with `body_is_base64`, that."""

    def __repr__(self) -> str:
        return f"<Outgoing {self.method} {self.task.url}>"

    @property
    def method(self) -> str:
        """GET, POST, ..."""
        return self.task.method

    @property
    def meta(self) -> dict[str, Any]:
        """The notes that came with the task: its `meta`."""
        return self.task.meta


RequestHook = Callable[[Outgoing], Awaitable[object] | object]


async def outgoing(task: Task, hooks: Sequence[RequestHook]) -> Task:
    """The task as it is sent after all hooks have seen it. Raises what they raise, BadUrl, and
    ValueError for what cannot be sent, or not there."""
    request = Outgoing(task)
    for hook in hooks:
        said = hook(request)
        if inspect.isawaitable(said):
            await said
    changed = msgspec.structs.replace(
        task, url=request.url, headers=request.headers, body=request.body
    )
    _check(task, changed)
    return changed


def _check(task: Task, changed: Task) -> None:
    """The lease is a permission for one host, and guards have looked at that one."""
    if changed.url != task.url:
        asked, now = parse(task.url), parse(changed.url)
        if (now.protocol, now.host) != (asked.protocol, asked.host):
            place = f"{asked.protocol}//{asked.host}"
            raise ValueError(f"a request hook may not leave {place}: {changed.url[:200]}")
    if changed.body is not None and (flaw := bad_body(changed)):
        raise ValueError(f"a request hook made a request that cannot be sent: {flaw}")
    for name, value in changed.headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"a request hook set the header {name!r:.80}: both must be text")
