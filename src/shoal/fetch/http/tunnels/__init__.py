"""Asks proxies for a way to a host, on the raw socket.

The answers of proxies are as untrusted as those of any server: their size is bounded here, their
time by the caller.
"""
