"""Adds seeds: up to a thousand as JSON, or any number in a stream of lines.

A stream is read only as fast as the frontier accepts tasks. If the frontier is slow, the
connection's buffers fill and the client has to wait. If a request breaks off, the client sends it
again from the start: seeds that were added already count as duplicates.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from aiohttp import StreamReader, web
from msgspec import Meta

from shoal.config import Rules
from shoal.core.task import Task
from shoal.errors import BadUrl, ConfigError, UnknownCrawl
from shoal.frontier.events import SEEDED, note_event
from shoal.frontier.values import Added
from shoal.seeds.seeding import add_all, read_seed
from shoal.web.api.crawls import CRAWL, crawl_of
from shoal.web.api.forms import SeededForm
from shoal.web.connections import Connection, connection_of
from shoal.web.context import Context
from shoal.web.guard import read_body
from shoal.web.problems import LineError, Problem
from shoal.web.routes import Route, body_of, json_response

MAX_SEEDS = 1000
MAX_LINE_BYTES = 1024 * 1024
ERRORS_SHOWN = 100
SILENT_S = 60.0
"""How long to wait for a line to be complete."""
NOTED_EVERY_S = 60.0
LINES = ("application/x-ndjson", "application/jsonl", "text/plain")


class Seeds(msgspec.Struct, forbid_unknown_fields=True):
    """Seeds as JSON, each still encoded, so that a wrong one does not spoil the others."""

    seeds: Annotated[list[msgspec.Raw], Meta(max_length=MAX_SEEDS)]


class SeedsForm(msgspec.Struct):
    """Seeds as JSON: URLs or tasks."""

    seeds: Annotated[list[str | Task], Meta(min_length=1, max_length=MAX_SEEDS)]


class _BadLines:
    """Collects the lines that are wrong. Counts all of them, and keeps the first `ERRORS_SHOWN`."""

    def __init__(self) -> None:
        self.line = 0
        self.count = 0
        self.errors: list[LineError] = []

    def note(self, reason: Exception) -> None:
        """Note that the line that was read last is wrong."""
        self.count += 1
        if len(self.errors) < ERRORS_SHOWN:
            self.errors.append(LineError(self.line, str(reason)))


async def seed(context: Context, request: web.Request) -> web.StreamResponse:
    """Add seeds to a crawl, which need not exist yet."""
    crawl, bad = crawl_of(request), _BadLines()
    if request.content_type in LINES:
        with context.seedings.entered():
            lines = lines_of(request.content, bad, connection_of(request))
            return json_response(await add_seeds(context, crawl, lines, bad))
    await read_body(request)
    given = (await body_of(request, Seeds)).seeds
    return json_response(await add_seeds(context, crawl, _each(given), bad))


async def add_seeds(
    context: Context, crawl: str, seeds: AsyncIterator[bytes], bad: _BadLines | None = None
) -> SeededForm:
    """Add seeds to a crawl. Raises Problem if every seed is wrong, or if the crawl takes none."""
    bad = bad or _BadLines()
    try:
        rules = await _rules(context, crawl)
        added = await add_all(context.frontier, crawl, _tasks(seeds, bad), rules, bad.note)
    except ConfigError as error:  # The crawl was cancelled, or its name is not valid.
        raise Problem(409, str(error)) from None
    if bad.count and added == Added():
        raise Problem(422, "not one seed is good", errors=bad.errors, bad=bad.count)
    if added.added or added.retried:
        notes = context.frontier.notes
        await note_event(notes, crawl, SEEDED, by="web", once_in_s=NOTED_EVERY_S)
    return SeededForm(
        crawl=crawl,
        added=added.added,
        duplicates=added.duplicates,
        bad=bad.count,
        errors=bad.errors,
    )


async def _rules(context: Context, crawl: str) -> Rules:
    try:
        return (await context.frontier.stats(crawl)).rules
    except UnknownCrawl:
        return Rules()


async def _tasks(seeds: AsyncIterator[bytes], bad: _BadLines) -> AsyncIterator[Task]:
    async for text in seeds:
        bad.line += 1
        if text.strip() in (b"", b'""'):
            continue
        try:
            yield read_seed(text)
        except BadUrl as error:
            bad.note(error)


async def _each(given: list[msgspec.Raw]) -> AsyncIterator[bytes]:
    """Yield each encoded seed as a line."""
    for one in given:
        yield bytes(one)


async def each_line(lines: Sequence[str]) -> AsyncIterator[bytes]:
    """Yield each line, encoded."""
    for line in lines:
        yield line.encode("utf-8", "replace")


async def lines_of(
    content: StreamReader, bad: _BadLines, connection: Connection
) -> AsyncIterator[bytes]:
    """The lines of a body, one after the other. Raises Problem for one that is too long or slow."""
    rest = bytearray()
    while not content.at_eof():
        lines = await _next_lines(content, rest, bad, connection)
        for line in lines:
            yield line
    connection.request_complete()
    yield bytes(rest)


async def _next_lines(
    content: StreamReader, rest: bytearray, bad: _BadLines, connection: Connection
) -> list[bytes]:
    """Read until at least one line is complete, and return all complete ones.

    `rest` is the beginning of an incomplete line, before and after. Raises Problem if no line is
    complete within `SILENT_S`, even if the client sends it byte by byte.
    """
    try:
        with connection.waiting():
            async with asyncio.timeout(SILENT_S):
                while chunk := await content.readany():
                    rest += chunk
                    if b"\n" in chunk:
                        break
                    _check_length(rest, bad.line + 1)
    except TimeoutError:
        raise Problem(408, f"no line came for {SILENT_S:.0f} s") from None
    *lines, last = bytes(rest).split(b"\n")
    _check_length(last, bad.line + len(lines) + 1)
    rest[:] = last
    return lines


def _check_length(line: bytes | bytearray, number: int) -> None:
    if len(line) > MAX_LINE_BYTES:
        raise Problem(413, f"line {number} is longer than {MAX_LINE_BYTES:,} bytes")


ROUTES = (
    Route(
        method="POST",
        path=f"{CRAWL}/seeds",
        answer=seed,
        summary="Add seeds: up to 1,000 as JSON, or any number of lines (application/x-ndjson)",
        body=SeedsForm,
        gives=SeededForm,
        takes_lines=True,
        is_endless=True,
    ),
)
