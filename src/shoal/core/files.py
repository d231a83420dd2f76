"""Files of items: tasks that fetch them, references in items, and records of what was stored.

A file is a task of its own. Its item has a reference, and the result of the task is a record of its
own. So neither waits for the other; both are joined when somebody reads them.
"""

from __future__ import annotations

from enum import StrEnum
from uuid import NAMESPACE_URL, uuid5

import msgspec

from shoal.core.task import Task
from shoal.core.urls import FINGERPRINT_BYTES, Normaliser, digest

FILE = "shoal:file"
"""Handler of these tasks, and the key in `meta` for their notes. No method can have this name."""
FILES_FIELD = "_files"
"""The field of an item that has the references to its files."""
DEFAULT_FIELD = "files"
"""The name for the files of an item unless the spider gives another."""

MAX_SHOWN = 200
"""How many characters of an invalid address are kept: some pages put whole pictures there."""

_every_parameter = Normaliser(())


class FileStatus(StrEnum):
    """What happened to a file."""

    DONE = "done"
    """It is stored."""
    DROPPED = "dropped"
    """It is not wanted, not allowed, or not there. The record's error says which."""
    DEAD = "dead"
    """It could not be fetched."""
    MISSING = "missing"
    """Nothing is known about it: it was not fetched, or not yet. No record has this status."""


class FileRef(msgspec.Struct, frozen=True):
    """An item's reference to a file."""

    field: str
    """The spider's name for it: `image`."""
    url: str
    id: str
    """The fingerprint of its task, in hex."""


class StoredFile(msgspec.Struct, kw_only=True):
    """The record of what happened to a file: unique on (crawl, fingerprint).

    A record that says "stored" is kept; otherwise the newest wins.
    """

    fingerprint: bytes
    url: str
    status: FileStatus
    at: float
    """When this became known."""
    error: str = ""
    """Why it is not stored."""
    type: str = ""
    """Its media type: `image/png`."""
    size: int = 0
    sha256: bytes = b""
    place: str = ""
    """Its place in the file store."""
    etag: str = ""
    last_modified: str = ""
    """With `etag`: the server's validators of this version, for the requests of the next crawl."""

    @property
    def is_done(self) -> bool:
        """Whether it is stored."""
        return self.status is FileStatus.DONE


class FileNote(msgspec.Struct, omit_defaults=True):
    """Notes that the task for a file carries in its `meta`."""

    id: str = ""
    """The fingerprint, in hex, under which the file is known: that of the task that the item named.
    The target of a redirect has another."""
    is_large: bool = False
    """Whether the file was found to be larger than a page may be."""


def file_task(url: str, session: str | None) -> Task:
    """The task that fetches the file at an address. Raises BadUrl.

    Its identity differs from that of the page at this address, and depends on nothing but the
    address and the session: a file that many items refer to is one task.
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
    """The record of a file that is never requested.

    Its key includes the reason, since another item may get the file at this address after all.
    """
    url = url[:MAX_SHOWN].encode("utf-8", "replace").decode()
    key = digest(f"no file {url} {error}")[:FINGERPRINT_BYTES]
    return StoredFile(fingerprint=key, url=url, status=FileStatus.DROPPED, at=at, error=error)


def note_of(task: Task) -> FileNote:
    """The notes of a task. The defaults if they are missing or invalid: any program may write
    tasks."""
    try:
        return msgspec.convert(task.meta[FILE], FileNote)
    except (KeyError, msgspec.ValidationError):
        return FileNote()


def is_large(task: Task) -> bool:
    """Whether a task fetches a file that needs more room than a page."""
    return note_of(task).is_large


def known_as(task: Task, fingerprint: bytes) -> bytes:
    """The fingerprint under which the file of a task is known."""
    try:
        known = bytes.fromhex(note_of(task).id)
    except ValueError:
        known = b""
    return known if len(known) == FINGERPRINT_BYTES else fingerprint


def redirected_file(target: Task, known: bytes) -> Task:
    """The task for the target of a redirect.

    Each file that leads there has one of its own, so that each gets a result.
    """
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
    """The fingerprint that admission gives to a task with an id of its own."""
    return digest(f"task {task_id}")[:FINGERPRINT_BYTES]


# The references in an item's data

_fields_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_refs_of = msgspec.json.Decoder(list[FileRef]).decode
_MARK = f'"{FILES_FIELD}"'.encode()


def with_refs(data: bytes, refs: list[FileRef]) -> bytes:
    """An item's data, a JSON object, with references to its files added. Of two fields with the
    same name, JSON readers take the last."""
    comma = b"" if data == b"{}" else b","
    return data[:-1] + comma + _MARK + b":" + msgspec.json.encode(refs) + b"}"


def refs_in(data: bytes) -> list[FileRef]:
    """The references in an item's data. Empty if the field of that name has something else."""
    if _MARK not in data:
        return []
    try:
        return _refs_of(_fields_of(data)[FILES_FIELD])
    except (KeyError, msgspec.DecodeError):
        return []
