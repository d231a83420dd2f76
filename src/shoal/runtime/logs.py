"""Log lines: plain for people, JSON for machines. Both go to stderr."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.core import plaintext
from shoal.core.addresses import without_credentials
from shoal.runtime.process import machine_name

SERVICE = "shoal"

tasks = logging.getLogger("shoal.tasks")
"""What becomes of single tasks. Only where lines are JSON: people have `shoal dead` for it."""
tasks.disabled = True


@contextmanager
def silent() -> Iterator[None]:
    """Our own lines are left out: what they would say is shown otherwise."""
    own = logging.getLogger(SERVICE)
    was, own.disabled = own.disabled, True
    try:
        yield
    finally:
        own.disabled = was


class PlainFormatter(logging.Formatter):
    """One line each, whatever the page says that it quotes. Only tracebacks have several."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return plaintext.one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        return plaintext.lines(without_credentials(super().format(record)))


class JsonFormatter(logging.Formatter):
    """One flat JSON object a line, by the names of OpenTelemetry."""

    def __init__(self, *, crawl: str = "", worker: str = "") -> None:
        """What the whole process is about."""
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
    """What a line is about, for machines: `log.info("...", extra=about(crawl="shop"))`. What is not
    known is left out."""
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
    """A lone surrogate is in no JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


class OneLine(logging.Filter):
    """For lines of ours that others' handlers write, as they do in a Scrapy process."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = plaintext.one_line(record.getMessage()), ()
        return True


QUIET = ("aiobotocore", "aiohttp", "asyncio", "boto3", "botocore", "httpcore", "httpx", "urllib3")
"""Libraries that have more to tell than anybody wants to read."""


def configure(
    *, json_lines: bool, only_ours: bool = False, crawl: str = "", worker: str = ""
) -> None:
    """Send all logs of this process to stderr: Shoal's, and whatever a spider and its modules log.

    For processes that are Shoal's, never for a program that uses it. With `only_ours`, Shoal's log
    alone: Scrapy looks after its own. `crawl` and `worker` are what the whole process is about.
    """
    handler = logging.StreamHandler()
    formatter = JsonFormatter(crawl=crawl, worker=worker) if json_lines else PlainFormatter()
    handler.setFormatter(formatter)
    tasks.disabled = not json_lines
    logger = logging.getLogger("shoal" if only_ours else None)
    for other in list(logger.handlers):
        if type(other) is logging.StreamHandler:  # A spider's own basicConfig(), or ours of before.
            logger.removeHandler(other)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logging.getLogger("shoal").propagate = not only_ours
    for library in map(logging.getLogger, QUIET):
        library.setLevel(library.level or logging.WARNING)
    logging.captureWarnings(json_lines)
