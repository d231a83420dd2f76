"""Settings that environment variables give, and the files that such variables name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.config.settings import SETTINGS
from shoal.errors import ConfigError

ENV_PREFIX = "SHOAL_"
FILE_SUFFIX = "_FILE"
MAX_FILE_BYTES = 8192
"""Of a file that a variable names. An address with many servers is still shorter."""


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return f"{ENV_PREFIX}{name.upper()}"


def of_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What the environment says. SHOAL_RESULTS_FILE and its like name files: so containers, and
    systemd, hand over passwords. Raises ConfigError."""
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
    """What a file says, without a word of it in an error: it may have a password."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1).decode("utf-8").strip()
    except OSError as error:
        raise ConfigError(f"{variable}: {path}: {error.strerror}") from None
    except ValueError:  # Not UTF-8, or no path at all.
        raise ConfigError(f"{variable}: cannot be read as text") from None
    if not text or len(text.splitlines()) > 1 or len(text) > MAX_FILE_BYTES:
        raise ConfigError(f"{variable}: {path}: write one address, in one line")
    return text
