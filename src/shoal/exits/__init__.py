"""The exits of a worker: reads lists of proxies and turns exits into routes.

The frontier decides which exit is used. Imports frontier, fetch, config and core.
"""
