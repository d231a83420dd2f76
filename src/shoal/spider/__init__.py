"""What users write against, and what reads pages for them: spiders, pages, selections, items.
Imports drivers, runtime and core; knows of no queue, no store and no network.
"""
