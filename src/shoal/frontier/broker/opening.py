"""Opens a frontier with a carrier: reads which carrier its address names, and the window sizes."""

from __future__ import annotations

from msgspec.structs import replace

from shoal.frontier.addresses import SIZE_OPTIONS, Place, Sizes
from shoal.frontier.broker.carrier import Carrier
from shoal.frontier.broker.carriers import open_carrier
from shoal.frontier.broker.frontier import CarriedFrontier
from shoal.frontier.port import Frontier
from shoal.frontier.redis.windows import Window


def open_carried(place: Place, sizes: Sizes) -> Frontier:
    """The frontier at a place that has a carrier. Connects only with the first call."""
    # They are taken out of the address, and named here for errors that list what there is.
    carrier = open_carrier(place.address, SIZE_OPTIONS)
    window = window_of(sizes, carrier)
    return CarriedFrontier(place.state, carrier, window, has_moved=sizes.has_moved)


def window_of(sizes: Sizes, carrier: Carrier) -> Window:
    """The window sizes from an address, or the defaults, within the carrier's size of blocks."""
    window = Window()
    if sizes.window is not None:
        window = replace(window, paced=sizes.window, fast=sizes.window)
    if sizes.block is not None:
        window = replace(window, block=sizes.block)
    return replace(window, block_bytes=min(window.block_bytes, carrier.most_bytes))
