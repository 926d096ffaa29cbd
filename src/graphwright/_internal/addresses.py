"""Which network addresses may be reached: those of the public internet, unless the developer said otherwise."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from graphwright._internal.threads import run_in_thread

Address = IPv4Address | IPv6Address

_NAT64 = ip_network("64:ff9b::/96")
_IPV6_INTERNET = ip_network("2000::/3")
# Written out, since what `is_global` knows depends on the version of Python.
_CLOSED = tuple(
    ip_network(entry)
    for entry in (
        "100.64.0.0/10",  # shared by a provider's customers
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Return whether the address belongs to the public internet, looking into the forms that carry another one."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _IPV6_INTERNET:
            return False
    if any(address.version == net.version and address in net for net in _CLOSED):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


async def addresses_of(host: str, port: int) -> list[Address]:
    """Return the addresses that a host name stands for now, in the order in which to try them.

    Raises:
        OSError: the name is unknown.
    """
    found = await run_in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    # A scope such as "%eth0" names a network of this machine, and is left on: such an address is never public.
    return list(dict.fromkeys(ip_address(entry[4][0]) for entry in found))
