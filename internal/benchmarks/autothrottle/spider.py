"""A spider that requests pages with AutoThrottle: python3 spider.py URL SECONDS CONCURRENCY"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess


class Spider(scrapy.Spider):
    name = "autothrottle"

    def start_requests(self):
        for i in range(100_000):
            yield scrapy.Request(f"{sys.argv[1]}/{i}")

    def parse(self, response):
        pass


process = CrawlerProcess({
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_TARGET_CONCURRENCY": float(sys.argv[3]),
    "CLOSESPIDER_TIMEOUT": int(sys.argv[2]),
    "ROBOTSTXT_OBEY": True,
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": False,
})
process.crawl(Spider)
process.start()
