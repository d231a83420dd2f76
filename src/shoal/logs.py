"""Log lines: plain for people, JSON for machines. Both go to stderr."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "pid": record.process,
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def configure(*, json_lines: bool) -> None:
    """Send Shoal's log to stderr. The root logger is left to the application."""
    handler = logging.StreamHandler()
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if json_lines else plain)
    logger = logging.getLogger("shoal")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
