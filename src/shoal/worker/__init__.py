"""A worker: lease ▸ visit ▸ commit. What decides is pure, what stores and sends is around it.
Imports seeds, and the ports below: spider, frontier, results, archive, fetch.
"""
