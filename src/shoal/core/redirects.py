"""Makes the request that a redirect asks for, as browsers do. Functions of values."""

from __future__ import annotations

import msgspec
from can_ada import URL

from shoal.core.task import Task, without_unknown
from shoal.core.urls import parse
from shoal.errors import BadUrl

KEPT_ELSEWHERE = frozenset({"accept", "accept-language", "user-agent"})
"""Headers of a task that are sent to another site as well. Any other may be a secret."""


def redirected(task: Task, status: int, url: str) -> Task:
    """The task that a redirect asks for. As in browsers, all but 307 and 308 turn it into a GET.

    What may be a secret is not sent to another host. Raises BadUrl if the request makes no sense
    without it.
    """
    keeps_method = status in (307, 308) or task.method in ("GET", "HEAD")
    headers = task.headers
    if not keeps_method:
        headers = {name: headers[name] for name in headers if not _is_of_body(name)}
    if not is_same_place(parse(task.url), parse(url)):
        if keeps_method and task.body:
            raise BadUrl(f"a body is not sent to another site: {url}")
        headers = {name: headers[name] for name in headers if name.lower() in KEPT_ELSEWHERE}
        task = without_unknown(task)
    return msgspec.structs.replace(
        task,
        url=url,
        task_id="",
        retry_count=0,
        method=task.method if keeps_method else "GET",
        headers=headers,
        body=task.body if keeps_method else None,
        body_is_base64=task.body_is_base64 and keeps_method,
        redirects=[*task.redirects, hop(task)],
        cookies=None,
    )


def hop(task: Task) -> str:
    """The entry for a request in `redirects`: a form and the page at its address must differ."""
    return task.url if task.method == "GET" else f"{task.method} {task.url}"


def is_same_place(one: URL, other: URL) -> bool:
    """Whether two addresses have the same scheme, host and port.

    An upgrade to https counts as the same place, for what was sent in the clear may also be sent
    encrypted; a downgrade does not.
    """
    is_upgrade = (one.protocol, other.protocol) == ("http:", "https:")
    same_scheme = one.protocol == other.protocol or (is_upgrade and not one.port + other.port)
    return same_scheme and (one.hostname, one.port) == (other.hostname, other.port)


def _is_of_body(header: str) -> bool:
    return header.lower().startswith("content-")
