"""Adds seeds to the frontier: from spiders, files, sitemaps and the inbox of a crawl.

Imports spider, frontier, fetch and what is below them.
"""
