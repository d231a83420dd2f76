"""Log lines, plain for people or JSON for machines. Both go to stderr."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from shoal.core import plaintext
from shoal.core.addresses import without_credentials
from shoal.runtime.process import machine_name

SERVICE = "shoal"

tasks = logging.getLogger("shoal.tasks")
"""The log of single tasks. Enabled only for JSON lines, as people have `shoal dead` for it."""
tasks.disabled = True


@contextmanager
def silent() -> Iterator[None]:
    """Leave out Shoal's own log lines, where their content is shown in another way."""
    own = logging.getLogger(SERVICE)
    was, own.disabled = own.disabled, True
    try:
        yield
    finally:
        own.disabled = was


class PlainFormatter(logging.Formatter):
    """Formats each record as one line, whatever it quotes of a page. Only tracebacks have more."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return plaintext.one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return plaintext.lines(without_credentials(super().format(record)))


class JsonFormatter(logging.Formatter):
    """Formats each record as one line with a flat JSON object, with the names of OpenTelemetry."""

    def __init__(self, *, crawl: str = "", worker: str = "") -> None:
        """`crawl` and `worker` are added to all lines of this process."""
        super().__init__()
        self._process = about(crawl=crawl, worker=worker)["about"]
        self._host = machine_name()

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "timestamp": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "service.name": SERVICE,
            "host.name": self._host,
            "process.pid": record.process,
            "logger": record.name,
            **self._process,
            **getattr(record, "about", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error.type"] = record.exc_info[0].__qualname__
            line["exception.stacktrace"] = self.formatException(record.exc_info)
        shown = {
            name: _encodable(without_credentials(value)) if isinstance(value, str) else value
            for name, value in line.items()
        }
        return plaintext.in_json(msgspec.json.encode(shown).decode())


def about(
    *,
    event: str | None = None,
    crawl: str | None = None,
    worker: str | None = None,
    url: str | None = None,
    host: str | None = None,
    status: int | None = None,
    error: str | None = None,
    stacktrace: str | None = None,
    duration_s: float | None = None,
) -> dict[str, dict[str, Any]]:
    """The fields of a line for machines: `log.info("...", extra=about(crawl="shop"))`.

    Empty values are left out.
    """
    named = {
        "event.name": event,
        f"{SERVICE}.crawl": crawl,
        f"{SERVICE}.worker": worker,
        "url.full": url,
        "server.address": host,
        "http.response.status_code": status,
        "error.type": error,
        "exception.stacktrace": stacktrace,
        "duration_s": duration_s,
    }
    return {"about": {name: value for name, value in named.items() if value not in (None, "")}}


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON cannot encode, written out."""
    return text.encode("utf-8", "backslashreplace").decode()


class OneLine(logging.Filter):
    """Keeps Shoal's lines to one line where foreign handlers write them, as in a Scrapy process."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = plaintext.one_line(record.getMessage()), ()
        return True


ERASE_BELOW = "\x1b[J"
"""Tells a terminal to erase everything from the cursor on."""


def over_progress(stream: TextIO) -> str:
    """What to write before other text. On a terminal it erases the progress line: the cursor is
    where that begins, and it is drawn again below the text."""
    is_live = stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return ERASE_BELOW if is_live else ""


class OverProgress(logging.Formatter):
    """Formats records for a stream that may be a terminal with a progress line."""

    def __init__(self, inner: logging.Formatter, stream: TextIO) -> None:
        super().__init__()
        self._inner = inner
        self._before = over_progress(stream)

    def format(self, record: logging.LogRecord) -> str:
        return self._before + self._inner.format(record)


QUIET = ("aiobotocore", "aiohttp", "asyncio", "boto3", "botocore", "httpcore", "httpx", "urllib3")
"""Libraries that log too much: only their warnings are shown."""


def configure(
    *, json_lines: bool, only_ours: bool = False, crawl: str = "", worker: str = ""
) -> None:
    """Send all logs of this process to stderr: Shoal's, and those of a spider and its modules.

    Only for Shoal's own processes, never for a program that uses Shoal as a library. With
    `only_ours`, only Shoal's own log is set up, as Scrapy sets up the others. `crawl` and `worker`
    are added to all JSON lines.
    """
    handler = logging.StreamHandler()
    formatter = JsonFormatter(crawl=crawl, worker=worker) if json_lines else PlainFormatter()
    handler.setFormatter(OverProgress(formatter, handler.stream))
    tasks.disabled = not json_lines
    logger = logging.getLogger("shoal" if only_ours else None)
    for other in list(logger.handlers):
        # Added by a spider's basicConfig(), or by an earlier call.
        if type(other) is logging.StreamHandler:
            logger.removeHandler(other)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logging.getLogger("shoal").propagate = not only_ours
    for library in map(logging.getLogger, QUIET):
        library.setLevel(library.level or logging.WARNING)
    logging.captureWarnings(json_lines)
