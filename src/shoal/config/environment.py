"""Reads settings from SHOAL_* environment variables, and from the files that some of them name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.config.settings import SETTINGS
from shoal.errors import ConfigError

ENV_PREFIX = "SHOAL_"
FILE_SUFFIX = "_FILE"
MAX_FILE_BYTES = 8192
"""Maximum size of a file that a variable names. Even an address with many servers is shorter."""


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"{ENV_PREFIX}{name.upper()}"


def of_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings that the environment gives. Variables like SHOAL_RESULTS_FILE name a file that
    holds the value, because containers and systemd pass passwords in files. Raises ConfigError."""
    values = {name: environ[at] for name in SETTINGS if (at := variable_of(name)) in environ}
    for name in (name for name, setting in SETTINGS.items() if setting.is_in_files):
        variable = variable_of(name) + FILE_SUFFIX
        if not (path := environ.get(variable)):
            continue
        if name in values:
            raise ConfigError(f"{variable_of(name)} and {variable} are both set")
        values[name] = _in_file(variable, path)
    return values


def _in_file(variable: str, path: str) -> str:
    """Read a setting from a file. Errors never quote the file, which may hold a password."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1).decode("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{variable}: {path}: {error.strerror}") from None
    except ValueError:  # The file is not UTF-8, or the path is not a valid one.
        raise ConfigError(f"{variable}: cannot be read as text") from None
    if not text or len(text.splitlines()) > 1 or len(text) > MAX_FILE_BYTES:
        raise ConfigError(f"{variable}: {path}: write one address, in one line")
    return text
