"""A worker: lease ▸ visit ▸ commit. Decisions are pure; the code that stores and sends is around
them. Imports seeds, and the ports below: spider, frontier, results, archive, fetch."""
