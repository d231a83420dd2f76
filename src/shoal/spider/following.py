"""Makes tasks from links: checks and applies the options of `Page.follow` and similar methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.core.bodies import Sent
from shoal.core.identities import NO_SESSION
from shoal.core.policy import parse_duration
from shoal.core.task import DEFAULT_HANDLER, MAX_CHAIN_LENGTH, MAX_SESSION_LENGTH, Task

Handler = Callable[..., Any] | str
"""A method of the spider, or its name."""


class Following(msgspec.Struct):
    """How links are followed: the options of `Page.follow`, as they were given."""

    handler: Handler | None
    priority: int | None
    meta: Mapping[str, Any] | None
    sent: Sent
    dont_filter: bool
    chain: str | None
    proxy_pool: str | None
    session: str | None
    accept: Iterable[int]
    max_retries: int | None
    not_before: datetime | str | None
    on_failure: Handler | None


def children(
    parent: Task, fingerprint: bytes, at: datetime, addresses: Iterable[str], how: Following
) -> list[Task]:
    """The tasks to fetch addresses, as children of the page with this fingerprint. Raises
    ValueError for invalid options."""
    _check_chain(how.chain)
    session = parent.session if how.session is None else how.session
    check_session(session, how.proxy_pool)
    job_type = DEFAULT_HANDLER if how.handler is None else handler_name(how.handler)
    depth, parent_id, meta = parent.depth + 1, fingerprint.hex(), how.meta
    method, headers, body, body_is_base64 = how.sent
    priority, dont_filter, chain = how.priority or 0, how.dont_filter, how.chain
    accept, not_before, max_retries = (
        accepted(how.accept),
        _moment_of(how.not_before),
        how.max_retries,
    )
    on_failure = "" if how.on_failure is None else handler_name(how.on_failure)
    tasks = [
        Task(
            url=url,
            job_type=job_type,
            method=method,
            headers={**headers} if headers else {},
            body=body,
            depth=depth,
            priority=priority,
            meta={**meta} if meta else {},
            parent=parent_id,
            created_at=at,
            dont_filter=dont_filter,
            chain=chain,
            proxy_pool=how.proxy_pool,
            session=session,
        )
        for url in addresses
    ]
    # Few links have any of these, and a page may have very many links.
    if body_is_base64 or accept or on_failure or not_before or max_retries is not None:
        for task in tasks:
            task.body_is_base64 = body_is_base64
            task.accept, task.max_retries = accept, max_retries
            task.not_before, task.on_failure = not_before, on_failure
    return tasks


def accepted(statuses: Iterable[int]) -> tuple[int, ...]:
    """The statuses besides 2xx that handlers read, sorted, each once. Raises ValueError."""
    if isinstance(statuses, Iterable) and not isinstance(statuses, str | bytes):
        found = list(statuses)
        if all(type(each) is int and 300 <= each <= 599 for each in found):
            return tuple(sorted(set(found)))
    raise ValueError(
        f"accept must list statuses from 300 to 599, such as {{404}}; not {statuses!r:.80}"
    )


def _moment_of(not_before: datetime | str | None) -> datetime | None:
    """The earliest time at which a task is sent. Raises ValueError."""
    if not_before is None:
        return None
    if isinstance(not_before, str):
        return datetime.now(UTC) + timedelta(seconds=parse_duration(not_before))
    if isinstance(not_before, datetime) and not_before.tzinfo is not None:
        return not_before.astimezone(UTC)
    raise ValueError(
        "not_before must be a time from now ('10m'), or a datetime with a time zone;"
        f" not {not_before!r:.80}"
    )


def _check_chain(chain: str | None) -> None:
    if chain is None or (isinstance(chain, str) and 0 < len(chain) <= MAX_CHAIN_LENGTH):
        return
    limit = f"1 to {MAX_CHAIN_LENGTH} characters"
    raise ValueError(f"a chain must be text of {limit}, not {chain!r:.80}")


def check_session(session: str | None, proxy_pool: str | None) -> None:
    """Raise ValueError if a session is invalid, or cannot be used with this pool."""
    if session is None:
        return
    if not isinstance(session, str) or not 0 < len(session) <= MAX_SESSION_LENGTH:
        limit = f"1 to {MAX_SESSION_LENGTH} characters"
        raise ValueError(f"a session must be text of {limit}, not {session!r:.80}")
    if proxy_pool is not None and session != NO_SESSION:
        raise ValueError(
            f"proxy_pool={proxy_pool!r:.60}: a session uses the exits of its group"
            f" (session={NO_SESSION!r} means none)"
        )


def handler_name(handler: Handler) -> str:
    """The name of a method of the spider. Raises ValueError for anything else."""
    name = handler if isinstance(handler, str) else getattr(handler, "__name__", "")
    if not name.isidentifier():
        raise ValueError(f"a handler must be a method of the spider or its name, not {handler!r}")
    return name
