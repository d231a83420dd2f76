"""The links of what a user may ask to follow: a URL, a selection, parsel's selectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from shoal.spider.selection import SRC_TAGS, Selection, links_in

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

    Link = str | Selection | Selector | SelectorList[Selector]


def links_of_each(targets: Iterable[Link]) -> Iterator[str]:
    """The links of several such."""
    for target in targets:
        if target is not None:
            yield from links_of(target)


def links_of(target: Link) -> Iterator[str]:
    """The links of one such. Raises ValueError if it is something else."""
    if isinstance(target, str):
        yield target
    elif isinstance(target, Selection):
        yield from links_in(target)
    elif isinstance(target, list):  # a SelectorList
        yield from links_of_each(target)
    elif hasattr(target, "root"):
        yield from _parsel_links(target)
    else:
        raise ValueError(f"cannot follow {target!r}: not a URL and not a selection")


def _parsel_links(selector: Selector) -> Iterator[str]:
    """The link of a parsel selector, as `links_in`: it holds a value, or an element of lxml."""
    if isinstance(selector.root, str):
        yield selector.root
        return
    link = selector.attrib.get("src" if selector.root.tag in SRC_TAGS else "href")
    if link is not None:
        yield link
