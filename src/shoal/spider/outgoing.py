"""A request just before it is sent, when the hook `request` may still change it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from shoal.core.task import Task, bad_body
from shoal.core.urls import parse


class Outgoing:
    """The request that is about to be sent for a task.

    Changes to it are not kept: the next try begins with the unchanged task.
    """

    __slots__ = ("body", "headers", "task", "url")

    def __init__(self, task: Task) -> None:
        self.task = task
        """The task of the request. Read it only."""
        self.url = task.url
        """Its path and query may be changed; its scheme, host and port may not."""
        self.headers = dict(task.headers)
        """Added to the headers of every request. They may replace those: `User-Agent`."""
        self.body = task.body
        """Text, or None. It is base64 if the task has `body_is_base64`."""

    def __repr__(self) -> str:
        return f"<Outgoing {self.method} {self.task.url}>"

    @property
    def method(self) -> str:
        """GET, POST, ..."""
        return self.task.method

    @property
    def meta(self) -> dict[str, Any]:
        """The notes of the task: its `meta`."""
        return self.task.meta


RequestHook = Callable[[Outgoing], Awaitable[object] | object]


async def outgoing(task: Task, hooks: Sequence[RequestHook]) -> Task:
    """The task as it is sent, after all hooks. Raises what they raise, BadUrl, and ValueError if
    the changed request cannot be sent or leaves its host."""
    request = Outgoing(task)
    for hook in hooks:
        returned = hook(request)
        if inspect.isawaitable(returned):
            await returned
    changed = msgspec.structs.replace(
        task, url=request.url, headers=request.headers, body=request.body
    )
    _check(task, changed)
    return changed


def _check(task: Task, changed: Task) -> None:
    """Raise if a hook made an invalid request. It may not leave the host that the lease permits and
    that was checked."""
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
