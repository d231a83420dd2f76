"""The HTTP client on llhttp: requests, connections, a pool of them, names, bodies."""
