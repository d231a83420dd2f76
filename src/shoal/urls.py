"""Keeps an old import path working: TRACKING_PARAMETERS is now part of `shoal`."""

from __future__ import annotations

from shoal.core.urls import TRACKING_PARAMETERS

__all__ = ["TRACKING_PARAMETERS"]
