"""Measures Scrapy with and without the service: python3 bench.py

It prints, for 1, 8 and 64 requests at once, the requests per second of Scrapy alone and with the service, the
median of their ratios in pairs of runs, the processor time of Scrapy for a request, and the delay that the service
adds to a request: the median time of a turn and that of an answer.
The site and the service are on the same machine, and the host has no delay.
"""
from __future__ import annotations

import statistics
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

import world

RUNS = 5
REQUESTS = 600

# Prints the requests per second, the processor time of a request in milliseconds, and the median milliseconds of a
# turn and of an answer, added up.
SPIDER = """
import statistics
import time

import collyrobots_scrapy
import scrapy

turns, answers = [], []


def timed(method, spent):
    async def call(*args):
        began = time.perf_counter()
        try:
            return await method(*args)
        finally:
            spent.append(1000 * (time.perf_counter() - began))

    return call


collyrobots_scrapy.Service.take = timed(collyrobots_scrapy.Service.take, turns)
collyrobots_scrapy.Service.answer = timed(collyrobots_scrapy.Service.answer, answers)


class MySpider(scrapy.Spider):
    name = "bench"
    custom_settings = {"CONCURRENT_REQUESTS": CLIENTS, "CONCURRENT_REQUESTS_PER_DOMAIN": CLIENTS}

    def start_requests(self):
        yield scrapy.Request("SITE/first", self.begin)

    def begin(self, response):
        self.began = time.perf_counter()
        self.used = time.process_time()
        turns.clear()
        answers.clear()
        for n in range(REQUESTS):
            yield scrapy.Request(f"SITE/{n}", self.parse)

    def parse(self, response):
        self.ended = time.perf_counter()

    def closed(self, reason):
        print("RATE", REQUESTS / (self.ended - self.began), 1000 * (time.process_time() - self.used) / REQUESTS, statistics.median(turns or [0]) + statistics.median(answers or [0]))
"""


def measure(site: world.Site, service: world.Service, clients: int, polite: bool, folder: str) -> list[float]:
    """Returns the figures that the spider prints."""
    spider = SPIDER.replace("CLIENTS", str(clients)).replace("SITE", site.url).replace("REQUESTS", str(REQUESTS))
    spider = f"import sys\nsys.path.insert(0, {str(Path(__file__).resolve().parent)!r})\n" + spider
    settings = {"ADDON": polite, "COLLYROBOTS_SERVICE": service.url, "USER_AGENT": world.AGENT, "LOG_LEVEL": "ERROR"}
    crawl = world.Crawl(spider, settings, folder).wait(300)
    for line in crawl.log.splitlines():
        if line.startswith("RATE "):
            return [float(figure) for figure in line.split()[1:]]
    raise RuntimeError(crawl.log)


def main() -> None:
    site = world.Site(pages={"*": "<html><body>" + "x" * 2000 + "</body></html>"})
    service = world.Service("-delay", "0")
    try:
        print("| Requests at once | Requests/s alone | with turns | Ratio | Processor time alone | with turns | Added to a request |")
        print("|---|---|---|---|---|---|---|")
        for clients in (1, 8, 64):
            alone, polite = [], []
            with tempfile.TemporaryDirectory() as folder:
                for _ in range(RUNS):
                    alone.append(measure(site, service, clients, False, folder))
                    polite.append(measure(site, service, clients, True, folder))
            ratio = statistics.median(with_turns[0] / without[0] for with_turns, without in zip(polite, alone))
            rate, used, _ = (statistics.median(figures) for figures in zip(*alone))
            polite_rate, polite_used, added = (statistics.median(figures) for figures in zip(*polite))
            print(f"| {clients} | {rate:.0f} | {polite_rate:.0f} | {ratio:.2f} | {used:.1f} ms | {polite_used:.1f} ms | {added:.1f} ms |", flush=True)
    finally:
        service.kill()
        site.close()


if __name__ == "__main__":
    main()
    unittest.doModuleCleanups()
