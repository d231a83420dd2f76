"""Keeps requests away from private addresses, whatever a page, a redirect or DNS says.

Literal addresses in URLs are checked before a request. Names are checked where they are resolved,
and a connection only goes to the very addresses that passed. Each resolution is checked anew, as
it may give other addresses than the one before.

The ranges are an explicit list, not Python's `is_global`: that depends on the Python version and
answers a different question. No public web server is in any of them.
"""

from __future__ import annotations

from shoal.core.networks import is_public
from shoal.errors import Refused
from shoal.fetch.http.dns import AddressInfo


def refusal(host: str, address: str) -> Refused:
    """The error for a host that is, or resolves to, a private address."""
    what = address if host == address else f"{host} is {address}, which"
    return Refused(f"{what} is a private address (see --allow-private)")


def only_public(host: str, found: list[AddressInfo]) -> list[AddressInfo]:
    """The public addresses among those of a host. Raises Refused if all are private."""
    public = [info for info in found if is_public(info[4][0])]
    if found and not public:
        raise refusal(host, found[0][4][0])
    return public
