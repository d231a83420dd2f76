"""Runs as many workers on this machine as a crawl can use."""
