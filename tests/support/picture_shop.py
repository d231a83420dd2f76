"""A shop whose products have pictures with every possible outcome, and a spider that crawls it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

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
"""The picture of each product, by SKU."""
ONE = '"one"'
"""The ETag of the first picture."""
STORED = ("plain", "same-file", "same-content", "moved", "large")
LIMITS = 'file_types = ("image/*",)\n    max_body_bytes = 20_000\n    max_file_bytes = 50_000'
"""Settings by which `large` may exceed the limit of pages, and `too-large` exceeds that of
files."""


def picture(name: str, size: int = 200) -> bytes:
    """Bytes that pass for a PNG picture here."""
    return PNG + name.encode() + b"\0" * (size - len(name) - len(PNG))


def sha256(body: bytes) -> str:
    """The SHA-256 of a body, as exports write it."""
    return hashlib.sha256(body).hexdigest()


def put_pictures(folder: Folder, site: Site, settings: str = LIMITS) -> None:
    """Write `pictures.py` for a site that is open."""
    folder.write("pictures.py", SPIDER.format(url=site.url, settings=settings))


class PictureShop(Site):
    """The shop. It answers 304 to clients that have the current version of the first picture."""

    def __init__(self) -> None:
        super().__init__(self._page)
        self.products = FATES
        self.is_mended = False
        """Whether the broken picture works now."""
        self.unchanged: list[str] = []
        """The paths answered with 304."""

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.headers.get("If-None-Match") == ONE and request.path == "/img/one.png":
            self.unchanged.append(request.path)
            return web.Response(status=304)
        return await super()._respond(request)

    async def _page(self, path: str) -> web.Response:
        name = path.rpartition("/")[2]
        if path.startswith("/p/") and name in self.products:
            return html(f'<h1>{name}</h1><img src="{self.products[name]}">')
        if name == "":
            return html("".join(f'<a href="/p/{sku}"></a>' for sku in self.products))
        if name == "broken.png" and self.is_mended:
            return _image(picture("broken"))
        answer = ANSWERS.get(name)
        return html("no such page", 404) if answer is None else answer()


def _image(body: bytes, **headers: str) -> web.Response:
    return web.Response(body=body, content_type="image/png", headers=headers)


ANSWERS: dict[str, Callable[[], web.Response]] = {
    "robots.txt": lambda: web.Response(text="User-agent: *\nDisallow: /private\n"),
    "one.png": lambda: _image(picture("one"), ETag=ONE),
    "copy-of-one": lambda: _image(picture("one")),
    "moved.png": lambda: web.Response(status=302, headers={"Location": "/img/target.png"}),
    "target.png": lambda: _image(picture("target")),
    "large.png": lambda: _image(picture("large", 30_000)),
    "too-large.png": lambda: _image(picture("too large", 60_000)),
    "sorry.jpg": lambda: web.Response(body=b"<!DOCTYPE html>sorry", content_type="image/jpeg"),
    "empty.png": lambda: _image(b""),
    "broken.png": lambda: html("a teapot", 418),
}
