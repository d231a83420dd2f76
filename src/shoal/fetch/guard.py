"""Keeps requests away from private addresses, whatever a page, a redirect or a name says.

Literal addresses in URLs are checked before a request; names are checked where they are resolved,
and a connection only goes to the very addresses that passed. A name that resolves to something
else the next time is checked again.

The ranges are a list of our own: what Python calls global depends on its version, and is asked
another question. No public web server is in any of them.
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
    """The public ones of a name's addresses. Raises Refused if it has only others."""
    public = [info for info in found if is_public(info[4][0])]
    if found and not public:
        raise refusal(host, found[0][4][0])
    return public
