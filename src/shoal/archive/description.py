"""The description of an archived page: everything but its body, as a JSON object that is the same
in every format."""

from __future__ import annotations

from typing import Annotated

import msgspec

from shoal.archive.port import RawPage
from shoal.core.content import page_digest
from shoal.core.task import Task, decode, encode
from shoal.errors import StorageFailed

Hex = Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{2})+$")]


class Description(msgspec.Struct, omit_defaults=True):
    """An archived page without its body."""

    task: msgspec.Raw
    """The task as JSON. A later version may have written it."""
    status: int
    headers: list[tuple[str, str]]
    """The headers as Latin-1, as HTTP defines them. This way, any bytes can be stored."""
    fetched_at: float
    fingerprint: Hex
    digest: Hex
    """The digest of the body, as in the name of a blob."""
    identity: str = ""


_decode = msgspec.json.Decoder(Description).decode


def describe(page: RawPage) -> bytes:
    """The description of a page, as JSON without line breaks."""
    return msgspec.json.encode(
        Description(
            msgspec.Raw(encode(page.task)),
            page.status,
            [(as_latin(name), as_latin(value)) for name, value in page.headers],
            page.fetched_at,
            page.fingerprint.hex(),
            page.digest.hex(),
            page.identity,
        )
    )


def described(json: bytes, place: str) -> Description:
    """Decode a description. Raises StorageFailed if it is damaged."""
    try:
        return _decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(place, error) from None


def page_of(description: Description, body: bytes, place: str) -> RawPage:
    """Restore a page. Raises StorageFailed if this is not its body, or if its task is damaged."""
    digest = page_digest(body)
    if digest.hex() != description.digest:
        raise _damaged(place, "its body is another one")
    return RawPage(
        task=_task_of(description, place),
        fingerprint=bytes.fromhex(description.fingerprint),
        status=description.status,
        headers=[(_text(name), _text(value)) for name, value in description.headers],
        fetched_at=description.fetched_at,
        body=body,
        digest=digest,
        identity=description.identity,
    )


def _task_of(description: Description, place: str) -> Task:
    try:
        return decode(bytes(description.task))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(place, error) from None


def _damaged(place: str, why: object) -> StorageFailed:
    return StorageFailed(f"{place} is damaged: {why}")


def as_latin(text: str) -> str:
    """The original bytes of a header, as Latin-1 text."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _text(latin: str) -> str:
    return latin.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
