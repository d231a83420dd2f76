"""Files of items: what a task for one is called, how an item refers to it, and what is kept of it.

The file is a task of its own. Its item has a reference, and what became of the file is a record of
its own: so neither waits for the other, and both are joined where somebody reads them.
"""

from __future__ import annotations

from enum import StrEnum
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.core.task import Task
from shoal.core.urls import FINGERPRINT_BYTES, Normaliser, digest

FILE = "shoal:file"
"""The handler of such tasks, and the key of `meta` for their notes. No method can be called so."""
FILES_FIELD = "_files"
"""The field of an item that has its references."""
DEFAULT_FIELD = "files"
"""What a spider calls the files of an item if it does not say otherwise."""

MAX_SHOWN = 200
"""Characters that are kept of an address that is none: pages write whole pictures there."""

_every_parameter = Normaliser(())


class FileStatus(StrEnum):
    """What became of a file."""

    DONE = "done"
    """It is stored."""
    DROPPED = "dropped"
    """It is not wanted, not allowed, or not there. The error says which."""
    DEAD = "dead"
    """It could not be had."""
    MISSING = "missing"
    """Nothing is known of it: it was not fetched, or not yet. No record has this."""


class FileRef(msgspec.Struct, frozen=True):
    """A reference to a file, as an item has it."""

    field: str
    """What the spider calls it: `image`."""
    url: str
    id: str
    """The fingerprint of its task, in hex."""


class StoredFile(msgspec.Struct, kw_only=True):
    """What became of a file: unique on (crawl, fingerprint). What was stored stays known as
    stored; apart from that the newest counts."""

    fingerprint: bytes
    url: str
    status: FileStatus
    at: float
    """When that was known."""
    error: str = ""
    """Why it is not stored."""
    type: str = ""
    """Its media type: `image/png`."""
    size: int = 0
    sha256: bytes = b""
    place: str = ""
    """Where it is in the store of files."""
    etag: str = ""
    last_modified: str = ""
    """What the server said of this version of it, for the next crawl to ask with."""

    @property
    def is_done(self) -> bool:
        """Whether it is stored."""
        return self.status is FileStatus.DONE


class FileNote(msgspec.Struct, omit_defaults=True):
    """What the task for a file brings along."""

    id: str = ""
    """The fingerprint, in hex, under which the file is known: of the task that the item named. A
    redirect from there has another."""
    is_large: bool = False
    """Whether it was found to be larger than a page may be."""


def file_task(url: str, session: str | None) -> Task:
    """The task for the file at an address. Raises BadUrl.

    Its identity is not that of the page at this address, and follows from the address alone: a file
    that many items name is one task.
    """
    normal = _every_parameter.identify(url).normal
    task_id = uuid5(NAMESPACE_URL, f"file {session or ''} {normal}").hex
    return Task(
        url=url,
        job_type=FILE,
        meta={FILE: {"id": _fingerprint(task_id).hex()}},
        session=session,
        dont_filter=True,
        task_id=task_id,
    )


def no_file(url: str, error: str, at: float) -> StoredFile:
    """The record of a file that is never asked for. Another item may have it all the same: so it is
    known by the reason, too."""
    url = url[:MAX_SHOWN].encode("utf-8", "replace").decode()
    key = digest(f"no file {url} {error}")[:FINGERPRINT_BYTES]
    return StoredFile(fingerprint=key, url=url, status=FileStatus.DROPPED, at=at, error=error)


def note_of(task: Task) -> FileNote:
    """The note of a task. One that somebody else wrote may have none, or anything."""
    try:
        return msgspec.convert(task.meta[FILE], FileNote)
    except (KeyError, msgspec.ValidationError):
        return FileNote()


def is_large(task: Task) -> bool:
    """Whether a task is for a file that needs more room than a page."""
    return note_of(task).is_large


def known_as(task: Task, fingerprint: bytes) -> bytes:
    """The fingerprint under which the file of a task is known."""
    try:
        known = bytes.fromhex(note_of(task).id)
    except ValueError:
        known = b""
    return known if len(known) == FINGERPRINT_BYTES else fingerprint


def redirected_file(target: Task, known: bytes) -> Task:
    """The task for the target of a redirect: one for each file that leads there, so that each hears
    of it."""
    return _as_file(target, FileNote(known.hex()), f"file {known.hex()} at {target.url}")


def with_room(task: Task, known: bytes) -> Task:
    """The task for a file that was found to be larger than a page may be."""
    note = FileNote(known.hex(), is_large=True)
    return _as_file(task, note, f"file {known.hex()} at {task.url} with room")


def _as_file(task: Task, note: FileNote, name: str) -> Task:
    return msgspec.structs.replace(
        task,
        meta={**task.meta, FILE: msgspec.to_builtins(note)},
        retry_count=0,
        dont_filter=True,
        task_id=uuid5(NAMESPACE_URL, name).hex,
    )


def _fingerprint(task_id: str) -> bytes:
    """As the frontier's door knows a task with an id of its own."""
    return digest(f"task {task_id}")[:FINGERPRINT_BYTES]


# The references in an item's data

_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_refs_of = msgspec.json.Decoder(list[FileRef]).decode
_MARK = f'"{FILES_FIELD}"'.encode()


def with_refs(data: bytes, refs: list[FileRef]) -> bytes:
    """An item's data, a JSON object, with references to its files. Of two fields with one name,
    readers of JSON take the last."""
    comma = b"" if data == b"{}" else b","
    return data[:-1] + comma + _MARK + b":" + msgspec.json.encode(refs) + b"}"


def refs_in(data: bytes) -> list[FileRef]:
    """The references in an item's data. A field of that name may be something else."""
    if _MARK not in data:
        return []
    try:
        return _refs_of(_fields_of(data)[FILES_FIELD])
    except (KeyError, msgspec.DecodeError):
        return []
