"""Alerts: what is wrong with crawls, told to those who want to know."""
