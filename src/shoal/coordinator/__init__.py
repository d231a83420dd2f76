"""What brings work to crawls at set times: schedules, the coordinator, one module for each chore.
Imports fleet and what is below it. No code of the user's runs here but in seed_process.py.
"""
