"""The HTTP client, built on llhttp: requests, connections and their pool, DNS, bodies, exits."""
