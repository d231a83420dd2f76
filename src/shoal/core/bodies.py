"""Bodies of requests: encodes forms, files and JSON as browsers do.

The same values always give the same bytes, because a task's body is part of its identity.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from mimetypes import MimeTypes
from typing import Any, NamedTuple
from urllib.parse import quote_plus

import msgspec

MAX_BODY_BYTES = 1024 * 1024
"""The largest body of a task: it is kept in the queue, and in memory together with others."""

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
PLAIN = "text/plain"
JSON = "application/json"
OCTETS = "application/octet-stream"

Text = str | int | float
Upload = tuple[str, bytes] | tuple[str, bytes, str]
"""A file: its name, its content and, unless it follows from the name, its media type."""
FormFields = Mapping[str, Text | Sequence[Text]] | Iterable[tuple[str, Text]]
"""Names and values. In a dict, a list stands for a field that occurs several times."""
Files = Mapping[str, Upload | Sequence[Upload]] | Iterable[tuple[str, Upload]]

_NEWLINE = re.compile(r"\r\n|\r|\n")
_NO_TYPE = re.compile(r"[^\x20-\x7e]")


class File(msgspec.Struct, frozen=True):
    """A file as a form sends it."""

    name: str
    content: bytes
    type: str = OCTETS


NO_FILE = File("", b"")
"""What a file field sends if no file was chosen."""

Field = tuple[str, str | File]
"""One entry of a form: its name, and a text or a file."""


class Body(NamedTuple):
    """A body and its media type."""

    content: bytes
    type: str


class Sent(NamedTuple):
    """The parts of a request that depend on its body, as fields of a task."""

    method: str
    headers: dict[str, str]
    body: str | None
    body_is_base64: bool


_PAGE = Sent("GET", {}, None, False)
"""A plain GET. Code that makes a task from it copies the headers."""


def sent(
    method: str | None,
    headers: Mapping[str, str] | None,
    *,
    body: str | bytes | None = None,
    form: FormFields | None = None,
    json: Any = None,
    files: Files | None = None,
) -> Sent:
    """The fields of a task that send this.

    The default method is POST with a form, JSON or files, otherwise GET. Raises ValueError if these
    cannot be sent, or not together.
    """
    if body is None and form is None and json is None and files is None:
        if method is None and not headers:  # The most frequent case by far.
            return _PAGE
        return Sent((method or "GET").upper(), {**headers} if headers else {}, None, False)
    given = {"body": body, "json": json, "form": form if files is None else files}
    kinds = [name for name, value in given.items() if value is not None]
    if len(kinds) > 1:
        raise ValueError(f"a request has one body, not {' and '.join(kinds)}")
    method = (method or ("GET" if kinds == ["body"] else "POST")).upper()
    if method in ("GET", "HEAD") and kinds == ["form"]:
        raise ValueError(f"a form has no body with {method}: its fields belong into the query")
    made = _made(body, form, json, files)
    return as_sent(method, headers, made)


def as_sent(method: str, headers: Mapping[str, str] | None, body: Body) -> Sent:
    """The fields of a task that send this body. Raises ValueError."""
    return Sent(method, _with_type(headers or {}, body.type), *on_wire(body.content))


def _made(
    body: str | bytes | None, form: FormFields | None, json: Any, files: Files | None
) -> Body:
    if body is not None:
        return Body(body if isinstance(body, bytes) else _utf8(body), "")
    if json is not None:
        return Body(_json(json), JSON)
    fields: list[Field] = [*_texts(form if form is not None else ())]
    if files is None:
        return Body(urlencoded(fields).encode(), URLENCODED)
    return multipart([*fields, *_uploads(files)])


def _with_type(headers: Mapping[str, str], kind: str) -> dict[str, str]:
    """The headers, with the type of the body unless they have a type already."""
    has_type = any(name.lower() == "content-type" for name in headers)
    if has_type and kind.startswith(MULTIPART):
        raise ValueError("the Content-Type of files follows from them and cannot be set")
    return {**headers} if has_type or not kind else {**headers, "Content-Type": kind}


def on_wire(content: bytes) -> tuple[str, bool]:
    """A body as a task holds it, and whether that is base64. Raises ValueError if too long."""
    if len(content) > MAX_BODY_BYTES:
        raise ValueError(too_long(len(content)))
    try:
        return content.decode(), False
    except UnicodeDecodeError:
        return b64encode(content).decode(), True


def too_long(size: int) -> str:
    """The error message for a body that is too long for a task."""
    return f"a body of {size:,} bytes: a task has at most {MAX_BODY_BYTES:,}"


def urlencoded(fields: Iterable[Field], charset: str = "utf-8") -> str:
    """Fields as the query of a URL. Of a file it has only the name."""
    return "&".join(
        f"{_quoted(name, charset)}={_quoted(_name_or_text(value), charset)}"
        for name, value in fields
    )


def plain_text(fields: Iterable[Field], charset: str = "utf-8") -> Body:
    """Fields as lines of text. Only people can read this format reliably."""
    lines = (f"{_crlf(name)}={_crlf(_name_or_text(value))}\r\n" for name, value in fields)
    return Body(_encoded("".join(lines), charset), PLAIN)


def multipart(fields: Iterable[Field], charset: str = "utf-8") -> Body:
    """Fields and files, each as a part of its own. The boundary is the digest of all parts, so none
    of them can contain it."""
    parts = [_part(name, value, charset) for name, value in fields]
    boundary = f"shoal-{blake2b(b''.join(parts), digest_size=16).hexdigest()}"
    line = f"--{boundary}\r\n".encode()
    content = b"".join(line + part + b"\r\n" for part in parts) + f"--{boundary}--\r\n".encode()
    return Body(content, f"{MULTIPART}; boundary={boundary}")


def file_of(upload: object, name: str) -> File:
    """The file that a user gave for a field. Raises ValueError."""
    match upload:
        case (str(file), bytes(content)):
            return File(file, content, _types().guess_type(file)[0] or OCTETS)
        case (str(file), bytes(content), str(kind)) if not _NO_TYPE.search(kind):
            return File(file, content, kind)
        case _:
            raise ValueError(
                f"a file is a name and its bytes, and perhaps a media type: field {name!r}"
            )


def text_of(value: object, name: str) -> str:
    """The text to send for a value that a user gave for a field. Raises ValueError."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"a field is text or a number, not {type(value).__name__}: {name!r}")


def _pairs(fields: Any, lists: tuple[type, ...]) -> Iterable[tuple[str, Any]]:
    """The names and values that a user gave, one pair for each value of a list."""
    for pair in fields.items() if isinstance(fields, Mapping) else fields:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(f"fields are a dict, or pairs of name and value, not {pair!r:.80}")
        name, value = pair
        several = isinstance(fields, Mapping) and isinstance(value, lists)
        for each in value if several else (value,):
            yield text_of(name, "its name"), each


def _texts(form: FormFields) -> Iterable[tuple[str, str]]:
    return ((name, text_of(value, name)) for name, value in _pairs(form, (list, tuple)))


def _uploads(files: Files) -> Iterable[tuple[str, File]]:
    return ((name, file_of(value, name)) for name, value in _pairs(files, (list,)))


@cache
def _types() -> MimeTypes:
    """The media types known to Python itself: those of the machine differ between machines."""
    return MimeTypes()


def _part(name: str, value: str | File, charset: str) -> bytes:
    head = f'Content-Disposition: form-data; name="{_escaped(_crlf(name))}"'
    if isinstance(value, str):
        return _encoded(f"{head}\r\n\r\n{_crlf(value)}", charset)
    head += f'; filename="{_escaped(value.name)}"\r\nContent-Type: {value.type}\r\n\r\n'
    return _encoded(head, charset) + value.content


def _escaped(name: str) -> str:
    return name.replace("\n", "%0A").replace("\r", "%0D").replace('"', "%22")


def _quoted(text: str, charset: str) -> str:
    # Unlike browsers, Python leaves ~ alone and quotes *.
    return quote_plus(_encoded(_crlf(text), charset), safe="*").replace("~", "%7E")


def _name_or_text(value: str | File) -> str:
    return value if isinstance(value, str) else value.name


def _crlf(text: str) -> str:
    return _NEWLINE.sub("\r\n", text)


def _encoded(text: str, charset: str) -> bytes:
    """Encode text. Characters that the charset lacks become references, as in HTML."""
    return text.encode(charset, "xmlcharrefreplace")


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"json= cannot be written as JSON: {error}") from None


def _utf8(body: str) -> bytes:
    try:
        return body.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"this body cannot be sent: {error}") from None
