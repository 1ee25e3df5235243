"""Settings of the example project: those of ``scrapy startproject`` and one add-on.

The line ``ADDONS`` is all that a project needs to obey robots.txt by the 1994 standard.
"""

BOT_NAME = "example"

SPIDER_MODULES = ["example.spiders"]
NEWSPIDER_MODULE = "example.spiders"

ADDONS = {"scrapy_norobots.Addon": 500}

# The name before the slash is the name of the robot in robots.txt files.
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot.html)"

ROBOTSTXT_OBEY = True

CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1

HTTPERROR_ALLOW_ALL = True  # missing pages become items too

FEED_EXPORT_ENCODING = "utf-8"
