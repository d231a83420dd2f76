"""Runs whole crawls: loads targets, starts worker processes and opens the stores they share.

Imports worker and the layers below it.
"""
