"""Working on a spider, before there is a crawl: one page tried, spiders checked, a first one
written, a prompt. Imports fleet and what is below; nothing here touches the stores of a crawl,
except to look into them.
"""
