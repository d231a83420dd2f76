"""Answers to questions about a crawl: how far, how fast, what became of this URL; and their JSON.
Imports coordinator and what is below it. Changes nothing but marks of near duplicates.
"""
