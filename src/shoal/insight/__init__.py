"""Answers questions about a crawl: how far it is, how fast, what became of a URL; also as JSON.

Imports coordinator and the layers below it. Changes nothing, except that it marks near duplicates,
and keeps points for charts.
"""
