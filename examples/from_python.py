"""Runs a crawl from a script, prints how it went, and exits with the crawl's exit code.

Pass it the URLs to start with:

    python examples/from_python.py 'https://shop.example/catalog?page=1'
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import shoal


class Headings(shoal.Spider):
    """Keeps the heading of every page of a catalogue."""

    def parse(self, page: shoal.Page) -> Iterator[dict[str, str | None] | shoal.Task]:
        """A page of the catalogue."""
        yield {"url": page.url, "heading": page.css("h1::text").get()}
        yield from page.follow_all("a.next")


def main(urls: list[str]) -> int:
    """Crawl these URLs and print the summary."""
    Headings.start_urls = urls
    try:
        summary = shoal.crawl(Headings, rate="5/s", max_pages=1000)
    except shoal.ShoalError as error:
        print(f"cannot crawl: {error}", file=sys.stderr)
        return 2
    stats = summary.stats
    print(f"{stats.crawl} is {stats.state} after {summary.seconds:.1f} s")
    print(f"{stats.done} pages done, {stats.dead} dead, {stats.dropped} dropped")
    print(f"{sum(summary.items.values())} items: shoal export {stats.crawl}")
    return summary.exit_code


# With workers=2, each worker is a process that imports this file: hence the guard.
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
