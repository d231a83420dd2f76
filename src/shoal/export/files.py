"""Opens the target of an export: a file that appears when it is complete, or standard output."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from shoal.errors import ConfigError, StorageFailed


@contextmanager
def standard_output() -> Iterator[BinaryIO]:
    """Standard output, for bytes. Raises StorageFailed if it cannot be written, but passes a
    BrokenPipeError through."""
    out = sys.stdout.buffer
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageFailed(f"standard output: {error.strerror}") from error


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A temporary file in the target's folder, which replaces the target if all goes well.

    Raises ConfigError if it cannot be created, and StorageFailed if it cannot be written.
    """
    final = Path(os.path.realpath(target))  # replace the file that a link points to, not the link
    temporary = final.parent / f".shoal-{secrets.token_hex(8)}.tmp"
    try:
        if final.exists() and not final.is_file():
            raise ConfigError(f"{target}: not a regular file")
        out = temporary.open("xb")
    except OSError as error:
        raise ConfigError(f"{target}: {error.strerror}") from None
    try:
        with out:
            if final.exists():
                shutil.copymode(final, temporary)
            yield out
            out.flush()
            os.fsync(out.fileno())
        temporary.replace(final)
    except OSError as error:
        raise StorageFailed(f"{target}: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
