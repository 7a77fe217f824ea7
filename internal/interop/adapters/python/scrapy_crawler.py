"""Runs the fetch cases of the conformance suite with Scrapy, which obeys robots.txt by ROBOTSTXT_OBEY."""
import json, sys
import scrapy, scrapy.crawler
from scrapy.utils.log import configure_logging
from twisted.internet import defer, reactor


class Spider(scrapy.Spider):
    name = "fetch"

    def start_requests(self):
        for url in self.urls:
            yield scrapy.Request(url, dont_filter=True)

    def parse(self, response):
        pass


def settings(agent):
    return {
        "USER_AGENT": agent,
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS": 1,
        "RETRY_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "CRITICAL",
        "DOWNLOAD_TIMEOUT": 10,
    }


@defer.inlineCallbacks
def crawl():
    for line in sys.stdin:
        q = json.loads(line)
        runner = scrapy.crawler.CrawlerRunner(settings(q["agent"]))
        yield runner.crawl(Spider, urls=q["fetch"])  # the log of the server says what was requested
        print("{}", flush=True)
    reactor.stop()


configure_logging({"LOG_LEVEL": "CRITICAL"})
reactor.callWhenRunning(crawl)
reactor.run()
