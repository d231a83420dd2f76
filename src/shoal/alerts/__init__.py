"""Alerts: finds what is wrong with crawls, and notifies people."""
