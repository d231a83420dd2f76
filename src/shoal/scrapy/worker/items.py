"""Turns Scrapy items into rows of Shoal's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import scrapy
from itemadapter import ItemAdapter

from shoal.core.records import RejectedItem, StoredItem
from shoal.spider.items import key_names, kind_of, store_form


class ResultsPipeline:
    """List it in ITEM_PIPELINES to have items stored in SHOAL_RESULTS (default: shoal.db).

    What is stored is what comes out of the last pipeline, together with the page it was read on,
    and before the page's request is finished. The scheduler stores it: only there is it known which
    request an item belongs to.
    """


class ItemStore:
    """Turns items into rows. `keys` says which fields are the key of a kind."""

    def __init__(self, keys: Mapping[str, str | Sequence[str]]) -> None:
        self._keys = {kind: key_names(key) for kind, key in keys.items()}

    def row(
        self, item: Any, *, url: str, fingerprint: bytes, scraped_at: float
    ) -> StoredItem | RejectedItem:
        """Return the item as it is stored or, if that cannot be, as it is rejected."""
        kind = kind_of(type(item))
        key = self._keys.get(kind) or key_names(getattr(item, "__key__", None) or ())
        content = ItemAdapter(item).asdict() if isinstance(item, scrapy.Item) else item
        row = store_form(content, url=url, fingerprint=fingerprint, scraped_at=scraped_at, key=key)
        row.kind = kind
        return row
