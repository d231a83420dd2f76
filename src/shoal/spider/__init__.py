"""The classes that users program with: spiders, pages, selections, items; and how pages are read.

Imports drivers, runtime and core; knows no queue, no store and no network.
"""
