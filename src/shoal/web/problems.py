"""Errors as programs get them: RFC 9457 problems."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from shoal.core import plaintext
from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageError, UnknownCrawl

RETRY_AFTER_S = 2


class ProblemDetails(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is wrong with a request, or with us."""

    status: int
    title: str
    detail: str = ""
    type: str = "about:blank"
    errors: list[LineError] = []
    """Of seeds: what is wrong with which of them."""
    bad: int = 0
    """Of seeds: how many were wrong. Only the first are named."""


class LineError(msgspec.Struct):
    """What is wrong with a line of seeds."""

    line: int
    detail: str


class Problem(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, detail: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.headers: dict[str, str] = more.pop("headers", {})
        self.details = ProblemDetails(
            status=status, title=HTTPStatus(status).phrase, detail=plaintext.lines(detail), **more
        )


def problem_of(error: Exception) -> Problem:
    """The problem that an error is."""
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
    return Problem(500, "a fault of ours: the log of `shoal serve` has it")


def encoded(details: ProblemDetails) -> bytes:
    """As JSON."""
    return msgspec.json.encode(details)


def problem_response(problem: Problem) -> web.Response:
    """A problem as an answer."""
    return web.Response(
        body=encoded(problem.details),
        status=problem.status,
        content_type="application/problem+json",
        headers=problem.headers,
    )
