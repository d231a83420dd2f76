"""The description of an archived page, all but its body: a JSON object, the same in every
format."""

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
    """As JSON. A later version may have written it."""
    status: int
    headers: list[tuple[str, str]]
    """As Latin-1, which is what HTTP says they are: any bytes can be written so."""
    fetched_at: float
    fingerprint: Hex
    digest: Hex
    """As in the name of a blob."""
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
    """Read a description. Raises StorageFailed if it is none."""
    try:
        return _decode(json)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(place, error) from None


def page_of(description: Description, body: bytes, place: str) -> RawPage:
    """A page as it was. Raises StorageFailed if this is not its body, or its task is none."""
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
    """The bytes of a header as it came, each as the character of its number."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _text(latin: str) -> str:
    return latin.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
