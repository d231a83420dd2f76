"""Starts crawls at set times: schedules, the coordinator, and one module for each of its chores.

Imports fleet and what is below it. User code runs only in seed_process.py.
"""
