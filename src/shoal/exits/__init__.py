"""Exits as a worker has them: lists of proxies are read, and exits become routes. What decides
which exit is used is in the frontier. Imports frontier, fetch, config and core.
"""
