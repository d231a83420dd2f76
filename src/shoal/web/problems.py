"""Errors as answers: problem details as RFC 9457 defines them."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from shoal.core import plaintext
from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageError, UnknownCrawl

RETRY_AFTER_S = 2


class ProblemDetails(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is wrong with a request, or with the server."""

    status: int
    title: str
    detail: str = ""
    type: str = "about:blank"
    errors: list[LineError] = []
    """What is wrong with which line of a request's seeds."""
    bad: int = 0
    """How many seeds were wrong. Only the first are in `errors`."""


class LineError(msgspec.Struct):
    """A line of seeds, and what is wrong with it."""

    line: int
    detail: str


class Problem(Exception):
    """An error that becomes the answer to a request."""

    def __init__(self, status: int, detail: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers: dict[str, str] = more.pop("headers", {})
        self.details = ProblemDetails(
            status=status, title=HTTPStatus(status).phrase, detail=plaintext.lines(detail), **more
        )


def problem_of(error: Exception) -> Problem:
    """The problem that answers a request in which `error` was raised."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, web.HTTPException):
        headers = {name: error.headers[name] for name in ("Allow",) if name in error.headers}
        return Problem(error.status, headers=headers)
    if isinstance(error, UnknownCrawl):
        return Problem(404, str(error))
    if isinstance(error, ConfigError):
        return Problem(400, str(error))
    if isinstance(error, StorageBusy):
        return Problem(503, str(error), headers={"Retry-After": str(RETRY_AFTER_S)})
    if isinstance(error, StorageError):
        return Problem(503, str(error))
    if isinstance(error, TimeoutError):
        return Problem(504, "it took too long")
    if isinstance(error, ShoalError):
        return Problem(500, str(error))
    return Problem(500, "internal error: see the log of `shoal serve`")


def encoded(details: ProblemDetails) -> bytes:
    """The details as JSON."""
    return msgspec.json.encode(details)


def problem_response(problem: Problem) -> web.Response:
    """The answer, as JSON, for a problem."""
    return web.Response(
        body=encoded(problem.details),
        status=problem.status,
        content_type="application/problem+json",
        headers=problem.headers,
    )
