"""Recognises the requests that Scrapy makes to retry a request."""

from __future__ import annotations

from typing import Any

from scrapy import Request

_CHANGED_BY_RETRY = ("meta", "priority", "dont_filter")


def is_retry(request: Request, other: Request) -> bool:
    """Whether `other` is a request that Scrapy makes to retry `request` unchanged. One that was
    changed (another proxy, another header) is a request of its own and treated as such."""
    times, before = (r.meta.get("retry_times") or 0 for r in (other, request))
    return (
        times > before
        and _without(other.meta, "retry_times") == _without(request.meta, "retry_times")
        and type(other) is type(request)
        and all(
            getattr(other, name) == getattr(request, name)
            for name in request.attributes
            if name not in _CHANGED_BY_RETRY
        )
    )


def _without(meta: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if key != name}
