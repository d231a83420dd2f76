"""The groups of settings in the help of commands that take all of them: first the settings that are
used most, then the others by topic."""

from __future__ import annotations

from shoal.cli.help import OPTIONS
from shoal.config import SETTINGS

PANELS = {
    OPTIONS: (
        *("name", "workers", "rate", "concurrency", "max_pages", "max_depth", "frontier"),
        *("results", "archive", "previous", "allow_private"),
    ),
    "Which pages": (
        *("allowed_hosts", "robots", "max_pages_per_host", "max_pages_per_shape"),
        *(
            "max_links_per_page",
            "drop_params",
            "fingerprints",
            "canonical",
            "seen",
            "seen_error",
            "seen_for",
        ),
    ),
    "Requests": ("concurrency_per_host", "user_agent", "timeout_s", "max_body_bytes", "cookies"),
    "Failures": ("max_retries", "max_losses", "max_blocks", "stop_after_errors", "lease_s"),
    "Storage": (
        *("history", "refresh_after", "simhash", "archive_format", "state"),
        *("file_types", "file_store", "max_file_bytes"),
    ),
    "Exits and accounts": (
        *("proxies", "proxy_pool", "pools", "accounts", "session", "sessions", "encrypt_key"),
    ),
    "Publishing": (
        *("publish", "publish_format", "publish_item", "publish_dead", "publish_finished"),
    ),
}
MORE = "More"
"""The panel of settings that are in no other panel."""

PANEL_OF = {name: panel for panel, names in PANELS.items() for name in names}
ALL = (*PANEL_OF, *(name for name in SETTINGS if name not in PANEL_OF))
"""Every setting, in this order."""
