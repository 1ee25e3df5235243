"""A Scrapy project that obeys robots.txt through the scrapy-norobots add-on."""
