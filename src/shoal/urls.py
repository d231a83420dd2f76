"""An old address: spiders that import TRACKING_PARAMETERS from here go on. It is `shoal`'s now."""

from __future__ import annotations

from shoal.core.urls import TRACKING_PARAMETERS

__all__ = ["TRACKING_PARAMETERS"]
