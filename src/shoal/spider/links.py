"""Finds the links in what a user wants to follow: a URL, a selection, parsel's selectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from selectolax.lexbor import LexborNode

from shoal.spider.selection import SRC_TAGS, Selection, elements_in, links_in

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

    Link = str | Selection | Selector | SelectorList[Selector]


def links_of_each(targets: Iterable[Link]) -> Iterator[str]:
    """The links of several targets. None is skipped."""
    for target in targets:
        if target is not None:
            yield from links_of(target)


def links_of(target: Link) -> Iterator[str]:
    """The links of one target. Raises ValueError if it is something else."""
    if isinstance(target, str):
        yield target
    elif isinstance(target, Selection):
        yield from links_in(target)
    elif isinstance(target, list):  # a SelectorList
        yield from links_of_each(target)
    elif hasattr(target, "root"):
        yield from _parsel_links(target)
    else:
        raise ValueError(f"cannot follow {target!r}: neither a URL nor a selection")


def _parsel_links(selector: Selector) -> Iterator[str]:
    """The link of a parsel selector, like `links_in`. It holds a value or an lxml element."""
    if isinstance(selector.root, str):
        yield selector.root
        return
    link = selector.attrib.get("src" if selector.root.tag in SRC_TAGS else "href")
    if link is not None:
        yield link


def links_inside(found: Selection, regions: Selection | None, *, nofollow: bool) -> Iterator[str]:
    """The links of elements in one of the regions, if there are any; with `nofollow`, without those
    that have rel=nofollow. Raises ValueError if there are values among them: an address does not
    know where it was found."""
    inside = None if regions is None else {node.mem_id: True for node in elements_in(regions)}
    for each in found:
        node = next(elements_in(each), None)
        if node is None:
            raise ValueError("within= and nofollow= need elements: follow 'a', not 'a::attr(href)'")
        if inside is not None and not _is_inside(node, inside):
            continue
        if nofollow and "nofollow" in (node.attrs.get("rel") or "").lower().split():
            continue
        yield from links_in(each)


def _is_inside(node: LexborNode, known: dict[int, bool]) -> bool:
    """Whether an element is known to be inside, or below one that is. Each is visited only once,
    however deep a page is."""
    way: list[int] = []
    above: LexborNode | None = node
    while above is not None and above.mem_id not in known:
        way.append(above.mem_id)
        above = above.parent
    is_inside = above is not None and known[above.mem_id]
    known.update(dict.fromkeys(way, is_inside))
    return is_inside
