"""Writes a first spider that runs as it is."""

from __future__ import annotations

import re
from keyword import iskeyword
from pathlib import Path

from shoal.core import urls
from shoal.core.networks import is_private_name
from shoal.errors import ConfigError

EXAMPLE = "https://shop.example/"

_TEMPLATE = '''"""A spider for {host}.

To try one page: shoal try {file}
To crawl: shoal crawl {file}
"""

from collections.abc import Iterator

from shoal import Item, Page, Spider, Task


class WebPage(Item, key="url"):
    """What is stored for a page. Items with the same key are one record."""

    url: str
    title: str | None
    heading: str | None


class {name}(Spider):
    """Reads the pages of {host}."""

    name = "{crawl}"
    start_urls = ("{url}",)
    allowed_hosts = ("{host}",)
    rate = "1/s"{private}

    def parse(self, page: Page) -> Iterator[WebPage | Task]:
        """Read one page, and follow its links.

        For another kind of page, write another method, and name it where you
        follow the links: handler=self.that_method
        """
        yield WebPage(
            url=page.url,
            title=page.css("title::text").get(),
            heading=page.css("h1::text").get(),
        )
        yield from page.follow_all("a[href]")
'''

_PRIVATE = "\n    allow_private = True  # By default, pages cannot lead it into your own network."
"""Added for a private address: whoever names one wants to crawl it."""
_TAKEN = frozenset({"Item", "Iterator", "None", "Page", "Spider", "Task", "WebPage"})
"""Names that the file already uses."""
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9]+")


def write_first_spider(file: Path, url: str | None, name: str | None) -> None:
    """Write a spider for this address to a new file. Raises ConfigError."""
    if file.suffix != ".py":
        raise ConfigError(f"{file} is not a .py file")
    parsed = urls.parse(url or EXAMPLE)
    name = name or _class_name(file.stem)
    if not name.isidentifier() or iskeyword(name) or name in _TAKEN:
        raise ConfigError(f"--name: {name!r} cannot be the name of the class")
    text = _TEMPLATE.format(
        file=file,
        name=name,
        crawl=name.lower(),
        url=parsed.href,
        host=parsed.host,
        private=_PRIVATE if is_private_name(parsed.hostname) else "",
    )
    if file.exists():
        raise ConfigError(f"{file} already exists: nothing was written")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as new:  # Another program may have been quicker.
            new.write(text)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None


def _class_name(stem: str) -> str:
    """`Shop` for shop.py, `MyShop` for my-shop.py."""
    words = _NOT_IN_NAMES.split(stem)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if name in _TAKEN:
        return f"{name}Site"
    return name if name.isidentifier() else f"Site{name}"
