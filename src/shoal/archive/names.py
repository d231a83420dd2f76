"""The names of objects in an archive: bodies, batches, folders of crawls.

blobs/ab/cdef0123….gz                             a body, named by its digest
<crawl>/pages/20260131T235959.123456Z-<random>…   a batch of descriptions of pages
<crawl>/warc/20260131T235959.123456Z-<random>…    a batch of pages as a WARC file
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from urllib.parse import quote

RANDOM_BYTES = 8


def crawl_folder(crawl: str) -> str:
    """A crawl's name as one part of a path, different for every crawl."""
    quoted = quote(crawl, safe="", errors="surrogatepass")
    if quoted.startswith("."):  # `.` and `..` lead elsewhere; other such names are hidden files.
        quoted = f"%2E{quoted[1:]}"
    return quoted or "%"  # No name is quoted as a lone "%".


def batch_name(crawl: str, folder: str, suffix: str) -> str:
    """A new name for a batch. Names sort by time and never collide between workers."""
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return f"{crawl_folder(crawl)}/{folder}/{moment}-{secrets.token_hex(RANDOM_BYTES)}{suffix}"


def blob_name(digest: bytes) -> str:
    """The name of the object that holds the body with this digest."""
    text = digest.hex()
    return f"blobs/{text[:2]}/{text[2:]}.gz"
