"""Translates errors of obstore: which pass, which do not, which are a wrong setup.

obstore distinguishes most failures only in the text of one error class.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from obstore import exceptions as failure

from shoal.errors import ConfigError, ShoalError, StorageBusy, StorageFailed

NOT_IMPLEMENTED = 501
PASSING_STATUSES = {408, 409, 429, 500, 502, 503, 504}
PASSING_CODES = {"RequestTimeout", "SlowDown", "OperationAborted", "ConditionalRequestConflict"}
REFUSED_CODES = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId"}
REGION_CODES = {"AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraint"}

_DEBUG = "\n\nDebug source"
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_WRONG_REGION = "incorrectly configured region"
_METADATA = "/latest/api/token"
"""Where a machine at AWS gets its credentials. obstore asks there if none are configured."""
_PANIC = "RustPanic"
"""The name of obstore's class for panics, which cannot be imported."""


class NotOffered(StorageFailed):
    """The service does not support this kind of request."""


@contextmanager
def translated(shown: str, name: str) -> Iterator[None]:
    """Raise errors of obstore as Shoal's own, except AlreadyExistsError."""
    try:
        yield
    except failure.AlreadyExistsError as error:
        # Two concurrent writes conflict: despite the error's name, there may be no object yet.
        if _status(str(error)) in PASSING_STATUSES:
            raise StorageBusy(f"{shown}: somebody else writes {name}") from None
        raise
    except TimeoutError:
        raise StorageBusy(f"{shown}: no answer") from None
    except (failure.BaseError, OSError, ValueError) as error:
        raise _mapped(shown, name, error) from None
    except Exception as error:
        if type(error).__name__ != _PANIC:
            raise
        raise StorageFailed(f"{shown}: {error}") from None


def _mapped(shown: str, name: str, error: Exception) -> ShoalError:
    text = str(error).partition(_DEBUG)[0]
    status = _status(text)
    match = _CODE.search(text)
    code = match[1] if match else ""
    if (wrong := _set_up_wrong(text, status, code)) is not None:
        return ConfigError(f"{shown}: {wrong}")
    if isinstance(error, FileNotFoundError):
        return StorageFailed(f"{shown}: {name} is gone")
    if status == NOT_IMPLEMENTED:
        return NotOffered(f"{shown}: the service does not know this request")
    if status in PASSING_STATUSES or code in PASSING_CODES:
        return StorageBusy(f"{shown}: {code or f'HTTP {status}'}")
    if status is None and "HTTP error" in text:
        return StorageBusy(f"{shown}: cannot reach the service (AWS_ENDPOINT_URL)")
    what = code or (f"HTTP {status}" if status else " ".join(text.split())[:300])
    return StorageFailed(f"{shown}: {what}")


def _set_up_wrong(text: str, status: int | None, code: str) -> str | None:
    """What the user has to do about a wrong setup. None if the error is of another kind."""
    if _METADATA in text:
        return "no login: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if code == "NoSuchBucket":
        return "there is no such bucket: make it first, or name another one"
    if _WRONG_REGION in text or code in REGION_CODES:
        return "the bucket is in another region: set AWS_REGION"
    if status in (401, 403) or code in REFUSED_CODES:
        return (
            f"access denied ({code or status}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY"
            " and what they may do with this bucket"
        )
    return None


def _status(text: str) -> int | None:
    match = _STATUS.search(text)
    return int(match[1]) if match else None
