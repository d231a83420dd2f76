"""Bringing URLs into the frontier: from spiders, files, sitemaps and the inbox of a crawl.
Imports the ports below: spider, frontier, fetch.
"""
