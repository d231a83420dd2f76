"""Scrapy requests as tasks: their JSON form, tagged values, and the cookies that go along. No
pickle."""
