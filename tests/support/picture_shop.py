"""A shop whose products have pictures, with one of every fate, and the spider that crawls it."""

from __future__ import annotations

import hashlib
from typing import Any

from aiohttp import web

from support.processes import Folder
from support.sites import Site, html

PNG = b"\x89PNG\r\n\x1a\n"
SPIDER = """
from shoal import Item, Spider

class Product(Item, key="sku"):
    sku: str

class Pictures(Spider):
    name = "pictures"
    start_urls = ["{url}"]
    rate = "none"
    allow_private = True
    allowed_hosts = ["127.0.0.1"]
    {settings}

    def parse(self, page):
        yield page.follow_all("a", handler=self.product)

    def product(self, page):
        product = Product(sku=page.css("h1::text").get())
        yield page.files("img", item=product, field="images")
        yield page.file(page.css("a.manual"), item=product, field="manual")
"""

FATES = {
    "plain": "/img/one.png",
    "same-file": "/img/one.png",
    "same-content": "/img/copy-of-one",
    "moved": "/img/moved.png",
    "large": "/img/large.png",
    "too-large": "/img/too-large.png",
    "gone": "/img/gone.png",
    "sorry": "/img/sorry.jpg",
    "empty": "/img/empty.png",
    "broken": "/img/broken.png",
    "forbidden": "/private/x.png",
    "elsewhere": "http://no.example/x.png",
    "data": "data:image/png;base64,AAAA",
    "none": "",
}
"""The picture of each product, by its sku."""
STORED = ("plain", "same-file", "same-content", "moved", "large")
LIMITS = 'file_types = ("image/*",)\n    max_body_bytes = 20_000\n    max_file_bytes = 50_000'
"""What makes the large one large, and the one that is too large too large."""


def picture(name: str, size: int = 200) -> bytes:
    """A picture, as far as anybody here looks at it."""
    return PNG + name.encode() + b"\0" * (size - len(name) - len(PNG))


def sha256(body: bytes) -> str:
    """As exports write it."""
    return hashlib.sha256(body).hexdigest()


def put_pictures(folder: Folder, site: Site, settings: str = LIMITS) -> None:
    """Write `pictures.py` for a site that is open."""
    folder.write("pictures.py", SPIDER.format(url=site.url, settings=settings))


def picture_shop() -> Site:
    """The shop."""
    return Site(_answer)


def _image(body: bytes, **headers: str) -> web.Response:
    return web.Response(body=body, content_type="image/png", headers=headers)


async def _answer(path: str) -> web.Response:
    name = path.rpartition("/")[2]
    answers: dict[str, Any] = {
        "one.png": lambda: _image(picture("one"), ETag='"one"'),
        "copy-of-one": lambda: _image(picture("one")),
        "moved.png": lambda: web.Response(status=302, headers={"Location": "/img/target.png"}),
        "target.png": lambda: _image(picture("target")),
        "large.png": lambda: _image(picture("large", 30_000)),
        "too-large.png": lambda: _image(picture("too large", 60_000)),
        "sorry.jpg": lambda: web.Response(
            body=b"<!DOCTYPE html><p>sorry", content_type="image/jpeg"
        ),
        "empty.png": lambda: _image(b""),
        "broken.png": lambda: web.Response(status=418),
        "robots.txt": lambda: web.Response(text="User-agent: *\nDisallow: /private\n"),
        "": lambda: html("".join(f'<a href="/p/{sku}"></a>' for sku in FATES)),
    }
    if path.startswith("/p/"):
        return html(f'<h1>{name}</h1><img src="{FATES[name]}">')
    return answers[name]() if name in answers else html("no such page", 404)
