"""Tools for working on a spider: try one page, check spiders, write a first spider, a prompt.

Imports fleet and the layers below it. The stores of a crawl are only read here, never changed.
"""
