"""Whole crawls: what a target is, a worker's process, N of them, the stores they share.
Imports worker and what is below it.
"""
