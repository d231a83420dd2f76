"""Request fingerprints of Scrapy's, as those of tasks."""

from __future__ import annotations

import hashlib
from typing import Protocol

from scrapy import Request

from shoal.core.urls import FINGERPRINT_BYTES
from shoal.scrapy.wire.sessions import is_session


class Fingerprinter(Protocol):
    """The interface of `crawler.request_fingerprinter`."""

    def fingerprint(self, request: Request) -> bytes: ...


def short_fingerprint(fingerprint: bytes, session: str | None = None) -> bytes:
    """Scrapy's fingerprint of a request, in the length of ours. Two sessions see two pages.

    It is hashed once more: those of a project's own making may be short, or differ only at the end.
    """
    if is_session(session):
        fingerprint += f"\0session {session}".encode()
    return hashlib.blake2b(fingerprint, digest_size=FINGERPRINT_BYTES).digest()
