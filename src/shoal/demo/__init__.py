"""A local shop and a spider that crawls it, used by `shoal demo` and by the tests.

This module defines what the shop sells and what its pages look like: values in, HTML out.
`shoal.demo.shop` serves it, `shoal.demo.spider` crawls it. Imports what a user's spider would.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from html import escape
from random import Random

import msgspec

PER_PAGE = 20
CATEGORIES = ("kitchen", "garden", "lighting", "paper", "travel", "workshop")

_MAKERS = ("Birch & Sons", "Café Noir", "Holm", "Müller", "North <3", "Old Mill", "Tern", "Øst")
_STUFFS = ("brass", "cedar", "copper", "enamel", "glass", "linen", "oak", "slate", "steel", "wool")
_THINGS = ("basket", "bowl", "box", "clock", "jar", "kettle", "lamp", "notebook", "stool", "tray")
_SENTENCES = (
    "It is made in small numbers, and each piece differs a little from the next.",
    "The surface darkens with the years; a drop of oil once a month keeps it supple.",
    "We test every one by hand before it leaves the workshop, and keep a record of the result.",
    "Parts that wear can be ordered singly, so that nothing has to be thrown away.",
    "It ships in a plain cardboard box without any plastic, usually within two working days.",
    "Customers tell us that it outlives whatever they had bought before it, often by decades.",
)
_TRACKING = ("utm_source=letter", "utm_campaign=spring", "gclid=Cj0KCQ", "fbclid=IwAR2x")
_JUNK = ("mailto:shop@shop.example", "javascript:void(0)", "tel:+4930123456", "", "#", "http://[")

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:0 1rem;color:#223}
header{padding:1rem 0;border-bottom:3px solid #17a;font-size:1.4rem}a{color:#17a}
nav,footer{padding:.6rem 0;font-size:.9rem}footer{border-top:1px solid #dde;margin-top:2rem}
ul{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:.6rem;padding:0}
li{list-style:none;padding:.7rem;border:1px solid #dde;border-radius:6px}
nav a,footer a{margin-right:.7rem}.price{font-weight:bold;font-size:1.2rem}.sku{color:#778}
"""
_LAYOUT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header>Shoal demo shop <small>host {host}</small></header>
<nav>{nav}</nav>
<main>
{main}
</main>
<footer>{footer}</footer>
</body>
</html>
"""


class WareKind(Enum):
    """What a crawler meets at a product's page."""

    PLAIN = auto()
    FAILS_FIRST = auto()
    BUSY_FIRST = auto()
    CLOSES_FIRST = auto()
    MISSING = auto()
    GONE = auto()
    NO_PRICE = auto()
    ODD_PRICE = auto()
    MOVED = auto()


FLAKY = {WareKind.FAILS_FIRST: 500, WareKind.BUSY_FIRST: 503, WareKind.CLOSES_FIRST: None}
"""The status of the first answer, after which all is well; None closes the connection instead."""
GONE = {WareKind.MISSING: 404, WareKind.GONE: 410}
"""The status with which these products' pages always answer."""
BROKEN = {WareKind.NO_PRICE: None, WareKind.ODD_PRICE: "on request"}
"""What stands in place of the price, which no spider can read as a number."""

_CYCLE = 50
_KINDS = {
    **dict.fromkeys((3, 13), WareKind.FAILS_FIRST),
    **dict.fromkeys((6, 16, 26, 36), WareKind.MOVED),
    8: WareKind.MISSING,
    18: WareKind.NO_PRICE,
    23: WareKind.BUSY_FIRST,
    33: WareKind.CLOSES_FIRST,
    38: WareKind.GONE,
    43: WareKind.ODD_PRICE,
}
"""Kinds by place in the cycle of product numbers; all other places are plain. A host with fifty
products or more has every kind."""


class Ware(msgspec.Struct, frozen=True):
    """One product of one host."""

    host: int
    """The host's place among the hosts of the shop, from 0."""
    number: int
    kind: WareKind
    title: str
    price: float

    @property
    def sku(self) -> str:
        """The product's ID, unique across all hosts."""
        return f"H{self.host + 1}-{self.number:04}"

    @property
    def category(self) -> str:
        """The product's category in the catalogue."""
        return CATEGORIES[self.number % len(CATEGORIES)]

    @property
    def path(self) -> str:
        """The path of the product's page."""
        return f"/product/{self.number}"

    @property
    def old_path(self) -> str:
        """The former path of the product's page, which redirects to `path`."""
        return f"/p/{self.number}"


def make_ware(host: int, number: int, seed: int) -> Ware:
    """Make the product with this number. The same arguments always give the same product."""
    rng = _random(f"ware {seed} {host} {number}")
    title = f"{rng.choice(_MAKERS)} {rng.choice(_STUFFS)} {rng.choice(_THINGS)}"
    kind = _KINDS.get((number + 7 * host + seed) % _CYCLE, WareKind.PLAIN)
    return Ware(host, number, kind, title, round(rng.uniform(2, 400), 2))


def photo_path(ware: Ware) -> str:
    """The path of a product's picture."""
    return f"/photo/{ware.number}.svg"


def listing_path(category: str | None, number: int) -> str:
    """The path and query of a page of the catalogue."""
    return f"/catalog?category={category}&page={number}" if category else f"/catalog?page={number}"


def messy_link(rng: Random, path: str, origin: str, *, far: bool) -> str:
    """One of the many spellings of an address that pages use; a `far` one is always absolute."""
    path, _, query = path.partition("?")
    pairs = [*filter(None, query.split("&")), *rng.sample(_TRACKING, rng.randrange(3))]
    rng.shuffle(pairs)
    absolute = (origin, origin.replace("http", "HTTP"))
    start = rng.choice(absolute if far else ("", "", "./..", *absolute))
    path = rng.choice((path, path, f"/.{path}", f"/sale/..{path}", _needless_escape(rng, path)))
    return f"{start}{path}{'?' if pairs else ''}{'&'.join(pairs)}{rng.choice(('', '', '#top'))}"


def _needless_escape(rng: Random, path: str) -> str:
    at = rng.randrange(len(path))
    return path if path[at] == "/" else f"{path[:at]}%{ord(path[at]):02x}{path[at + 1 :]}"


def _random(seed: str) -> Random:
    return Random(seed)  # noqa: S311 - not used for secrets


class Pages:
    """Makes the HTML of one host. A page is the same each time it is made."""

    def __init__(
        self, host: int, wares: Sequence[Sequence[Ware]], origins: Sequence[str], *, messy: bool
    ) -> None:
        """`wares` and `origins` are those of all hosts, since hosts of a messy shop link to each
        other."""
        far = (host + 1) % len(wares)
        self._host = host
        self._own, self._far = wares[host], wares[far]
        self._origin, self._far_origin = origins[host], origins[far]
        self._categories = sorted({ware.category for ware in self._own})
        self._messy = messy

    def home(self) -> str:
        """The front page."""
        rng = self._rng("/")
        return self._page(rng, "", f"<h1>Welcome</h1>\n{self._products(rng, self._own[:PER_PAGE])}")

    def listing(self, category: str | None, number: int) -> str | None:
        """A page of the catalogue, or None if the catalogue has no such page."""
        wares = [ware for ware in self._own if category in (None, ware.category)]
        shown = wares[(number - 1) * PER_PAGE : number * PER_PAGE] if number > 0 else []
        if not shown:
            return None
        heading = f"{(category or 'catalog').capitalize()}, page {number}"
        rng = self._rng(heading)
        main = f"<h1>{heading}</h1>\n{self._products(rng, shown)}"
        if number * PER_PAGE < len(wares):
            main += self._link(rng, listing_path(category, number + 1), "Next page", "next")
        return self._page(rng, heading, main)

    def product(self, ware: Ware) -> str:
        """A product's page."""
        rng = self._rng(ware.path)
        price = BROKEN.get(ware.kind, f"{ware.price:.2f}")
        shown_price = f'€ <span class="price">{price}</span>' if price else "Sold out"
        prose = "\n".join(
            f"<p>{' '.join(rng.sample(_SENTENCES, 4))}</p>" for _ in range(rng.randrange(3, 16))
        )
        category = self._link(rng, listing_path(ware.category, 1), ware.category)
        main = (
            f'<p class="breadcrumbs">Shop › {category} › {ware.sku}</p>\n'
            f"<h1>{escape(ware.title)}</h1>\n"
            f'<img class="photo" src="{photo_path(ware)}" alt="">\n'
            f'<p><span class="sku">{ware.sku}</span></p>\n'
            f"<p>{shown_price}</p>\n"
            f'<div class="description">\n{prose}\n</div>\n'
            f"<h2>Related</h2>\n<ul>\n{self._related(rng)}</ul>"
        )
        return self._page(rng, ware.title, main)

    def photo(self, ware: Ware) -> str:
        """A picture of a product, as SVG. All products of a category have the same picture."""
        colour = self._rng(ware.category).randrange(360)
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8">'
            f'<circle cx="4" cy="4" r="3" fill="hsl({colour} 60% 50%)"/></svg>'
        )

    def note(self, text: str) -> str:
        """A page with a single sentence."""
        return self._page(self._rng(text), text, f"<h1>{escape(text)}</h1>")

    def _rng(self, page: str) -> Random:
        return _random(f"page {self._host} {page}")

    def _page(self, rng: Random, title: str, main: str) -> str:
        return _LAYOUT.format(
            title=escape(f"{title} · Shoal demo shop" if title else "Shoal demo shop"),
            style=_STYLE,
            host=self._host + 1,
            nav=self._nav(rng),
            main=main,
            footer=self._footer(rng),
        )

    def _nav(self, rng: Random) -> str:
        links = [self._link(rng, "/", "Home"), self._link(rng, listing_path(None, 1), "Catalog")]
        links += [self._link(rng, listing_path(name, 1), name) for name in self._categories]
        if self._messy:
            links.append(self._link(rng, listing_path(None, 1), "Our other shop", far=True))
        return "\n".join(links)

    def _footer(self, rng: Random) -> str:
        """Links that robots.txt forbids, and in a messy shop links that lead nowhere."""
        links = [self._link(rng, "/cart", "Cart")]
        links += [self._link(rng, f"/private/{rng.randrange(5)}", "Staff")]
        if self._messy:
            links += [f'<a href="{href}">{href or "empty"}</a>' for href in _JUNK]
        return "\n".join(links)

    def _products(self, rng: Random, wares: Sequence[Ware]) -> str:
        """A grid of products. Each is linked twice, as in real shops: by its picture and name."""
        cells = []
        for ware in wares:
            path = ware.old_path if ware.kind is WareKind.MOVED else ware.path
            picture, name = self._link(rng, path, "▣"), self._link(rng, path, ware.title)
            cells.append(f'<li class="product">{picture} {name}</li>\n')
        return f'<ul class="products">\n{"".join(cells)}</ul>\n'

    def _related(self, rng: Random) -> str:
        """Links to some products, moved ones at their new path, and to one of another host."""
        near = rng.sample(self._own, min(6, len(self._own)))
        links = [self._link(rng, ware.path, ware.title, "related") for ware in near]
        if self._messy:
            ware = rng.choice(self._far)
            links.append(self._link(rng, ware.path, ware.title, "related", far=True))
        return "".join(f"<li>{link}</li>\n" for link in links)

    def _link(self, rng: Random, path: str, text: str, css: str = "", *, far: bool = False) -> str:
        origin = self._far_origin if far else self._origin
        href = messy_link(rng, path, origin, far=far) if self._messy else path
        attribute = f' class="{css}"' if css else ""
        return f'<a{attribute} href="{escape(href)}">{escape(text)}</a>'
