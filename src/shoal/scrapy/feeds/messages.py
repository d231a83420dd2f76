"""Messages of a feed as Scrapy requests: a message is a plain URL or a JSON object.

An object may have `url`, `method`, `meta`, `headers`, `cookies`, `priority`, `cb_kwargs`, `body`
and `dont_filter`; all other fields are form data, as with scrapy-redis.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from scrapy import FormRequest, Request

from shoal.core.urls import parse
from shoal.errors import BadUrl

JSON_SCALARS = (str, int, float, bool)
MOST_BYTES = 2**20


class BadMessage(ValueError):
    """No request can be made of a message. The text says why."""


class _Wanted(msgspec.Struct, forbid_unknown_fields=False):
    """The fields of an object that are not form data."""

    url: str
    method: str = "GET"
    meta: dict[str, Any] | None = None
    headers: dict[str, str | list[str]] | None = None
    cookies: dict[str, str] | list[dict[str, Any]] | None = None
    priority: int = 0
    cb_kwargs: dict[str, Any] | None = None
    body: str | None = None
    dont_filter: bool = True


def text_of(data: str | bytes, encoding: str) -> str:
    """Return a message as text. Raises BadMessage."""
    if isinstance(data, str):
        return data
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise BadMessage(f"it is not {encoding} text") from None


def request_of(data: str | bytes, encoding: str) -> Request:
    """Return the request that a message asks for. Raises BadMessage."""
    if len(data) > MOST_BYTES:
        raise BadMessage(f"it is longer than {MOST_BYTES} bytes")
    text = text_of(data, encoding).strip()
    try:
        content = json.loads(text)
    except ValueError:
        return _request(_Wanted(url=text), {})
    except RecursionError:
        raise BadMessage("its JSON is nested too deep") from None
    if not isinstance(content, dict):
        raise BadMessage("it is JSON, but no object")
    return _of_object(content)


def _of_object(content: dict[str, Any]) -> Request:
    if content.get("url") is None:
        raise BadMessage("it has no url")
    try:
        wanted = msgspec.convert(content, _Wanted)
    except msgspec.ValidationError as error:
        raise BadMessage(str(error)) from None
    names = set(_Wanted.__struct_fields__)
    form = {name: _form_value(name, content[name]) for name in content if name not in names}
    if form and wanted.body is not None:
        raise BadMessage(f"it has a body, and form data too: {', '.join(sorted(form))}")
    return _request(wanted, form)


def _form_value(name: str, value: Any) -> str | list[str]:
    """Return form data as text; numbers are written as JSON writes them."""
    if isinstance(value, list):
        return [_form_text(name, each) for each in value]
    return _form_text(name, value)


def _form_text(name: str, value: Any) -> str:
    if not isinstance(value, JSON_SCALARS):
        raise BadMessage(f"form data is text, numbers or lists of these: {name!r}")
    return value if isinstance(value, str) else json.dumps(value)


def _request(wanted: _Wanted, form: dict[str, str | list[str]]) -> Request:
    fields = msgspec.structs.asdict(wanted)
    fields["method"] = wanted.method.upper()
    if not fields["method"].isalpha():
        raise BadMessage(f"not a method: {wanted.method!r}")
    try:
        parse(wanted.url)  # A feed must not make this machine read its own files.
        # The form goes into the body of a POST, and into the URL of anything else.
        return FormRequest(formdata=form, **fields) if form else Request(**fields)
    except (BadUrl, ValueError, TypeError) as error:
        raise BadMessage(str(error)) from None
