"""Requests as they travel: tasks, tagged values, and the cookies that go along. No pickle."""
