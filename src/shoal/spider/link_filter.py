"""Filters links by their addresses, for the options of `Page.follow_all` and of rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from shoal.core.url_patterns import UrlPattern, path_at, read_patterns

_OF_FILES = """
7z 7zip apk bin bz2 deb dmg exe gz iso jar msi rar rpm tar tgz xz zip zst css js
ai avif bmp cdr drw dxf eps gif ico jfif jpe jpeg jpg mng pct png psd psp pst svg tif tiff webp
3gp aac aiff asf asx au avi flac flv m4a m4v mid mov mp3 mp4 mpeg mpg ogg qt ra rm swf wav webm wma
wmv doc docm docx dot dotm dotx epub odp ods odt pdf potm potx pps ppsm ppsx ppt pptm pptx rtf xls
xlsb xlsm xlsx xltm xltx eot otf ttf woff woff2
"""
FILE_EXTENSIONS = frozenset(_OF_FILES.split())
"""Extensions of files that are not pages."""


class LinkFilter(msgspec.Struct, frozen=True):
    """Says which links are wanted, by their addresses."""

    allow: tuple[UrlPattern, ...]
    """If there are any, the address must match one of these."""
    deny: tuple[UrlPattern, ...]
    """The address must match none of these."""
    files: bool
    """Whether the link may lead to a file that is not a page."""

    def wants(self, url: str) -> bool:
        """Whether an absolute address is wanted."""
        if self.allow and not any(pattern.matches(url) for pattern in self.allow):
            return False
        if self.deny and any(pattern.matches(url) for pattern in self.deny):
            return False
        return self.files or not is_file(url)


def link_filter(
    allow: str | Iterable[str], deny: str | Iterable[str], files: Any
) -> LinkFilter | None:
    """The filter for these options. None: all links are wanted. Raises ValueError."""
    if allow == () and deny == () and files is not False:
        return None
    return LinkFilter(
        read_patterns("allow", allow), read_patterns("deny", deny), files is not False
    )


def is_file(url: str) -> bool:
    """Whether an address has the extension of a file that is not a page."""
    name = url[path_at(url) :].partition("?")[0].rpartition("/")[2]
    _, dot, extension = name.rpartition(".")
    return bool(dot) and extension.lower() in FILE_EXTENSIONS
