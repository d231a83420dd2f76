"""Exits: the pools that a project has, where their addresses come from, and what may be learnt of
them before a crawl. Imports the frontier and the fetcher; knows of no worker.
"""
