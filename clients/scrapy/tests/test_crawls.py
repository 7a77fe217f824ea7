"""Runs spiders of Scrapy with the service. The access logs of the sites decide."""
from __future__ import annotations

import os
import time
import unittest

from world import AGENT, Case, requesting, wait_until


def page(*links: str) -> str:
    return "<html><body>" + "".join(f'<a href="{link}">{link}</a>' for link in links) + "</body></html>"


class Pace(Case):
    """Crawl-delay, redirects, retries and Retry-After."""

    def test_delay_and_rules(self) -> None:
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n", pages={"*": page()})
        urls = [f"{site.url}/{n}" for n in range(6)] + [f"{site.url}/no", f"{site.url}/no/1"]
        crawl = self.crawl(urls, self.service())
        self.assertEqual(sorted(site.paths()), [f"/{n}" for n in range(6)], crawl.log)
        self.assert_gaps(site, 0.3)
        self.assertEqual({hit.agent for hit in site.log}, {AGENT})
        stats = crawl.stats()
        self.assertEqual((stats["robotstxt/forbidden"], stats["collyrobots/denied/rule"]), (2, 2))
        self.assertIn('denied: "Disallow: /no", line 3 of', crawl.log)

    def test_redirects_and_retries(self) -> None:
        """Each redirect and each retry has a turn, and a redirect to a disallowed page is not followed."""
        faults = {"left": 2}

        def flaky(_: object) -> object:
            faults["left"] -= 1
            return (500, {}, "") if faults["left"] >= 0 else page()

        other = self.site("127.0.0.2", robots="User-agent: *\nCrawl-delay: 0.3\n", pages={"/end": page()})
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n", pages={
            "/a": (302, {"Location": "/b"}, ""), "/b": (301, {"Location": other.url + "/end"}, ""),
            "/hidden": (302, {"Location": "/no"}, ""), "/flaky": flaky})
        crawl = self.crawl([site.url + path for path in ("/a", "/hidden", "/flaky")], self.service())
        self.assertEqual(sorted(site.paths()), ["/a", "/b", "/flaky", "/flaky", "/flaky", "/hidden"], crawl.log)
        self.assertEqual(other.paths(), ["/end"])
        self.assert_gaps(site, 0.3)
        self.assert_gaps(other, 0.3)

    def test_closed_connection(self) -> None:
        """Twisted does not repeat a request by itself when a connection that was used before is closed."""
        def close(handler: object) -> None:
            handler.close_connection = True  # type: ignore[attr-defined]

        site = self.site(robots="User-agent: *\nCrawl-delay: 0.4\n", pages={"/1": page(), "/2": page(), "/gone": close})
        urls = [site.url + path for path in ("/1", "/gone", "/2")]
        crawl = self.crawl(urls, self.service(), CONCURRENT_REQUESTS_PER_DOMAIN=1, RETRY_TIMES=1)
        self.assertEqual(sorted(site.paths()), ["/1", "/2", "/gone", "/gone"], crawl.log)
        self.assert_gaps(site, 0.4)

    def test_retry_after(self) -> None:
        """429 with Retry-After holds back all requests to the host, also if the headers are many."""
        many = {f"X-Padding-{n}": "x" * 9000 for n in range(12)}
        busy = self.site(pages={"/busy": (429, {**many, "Retry-After": "2"}, ""), "*": page()})
        other = self.site("127.0.0.2", pages={"*": page()})
        urls = [busy.url + "/busy", busy.url + "/1", busy.url + "/2"] + [f"{other.url}/{n}" for n in range(5)]
        crawl = self.crawl(urls, self.service("-delay", "100ms"), CONCURRENT_REQUESTS_PER_DOMAIN=1, RETRY_TIMES=1)
        self.assertEqual(len(busy.paths()), 4, crawl.log)
        held = [after.at - before.at for before, after in zip(busy.log, busy.log[1:]) if before.path == "/busy"]
        self.assertGreaterEqual(min(held), 2, busy.log)
        self.assertLess(other.log[-1].at - other.log[0].at, 2)

    def test_own_retries(self) -> None:
        """A spider that requests a page again itself also waits."""
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\n", pages={"/poll": page()})
        spider = f"""
            import scrapy

            class MySpider(scrapy.Spider):
                name = "test"
                start_urls = ["{site.url}/poll"]

                def parse(self, response):
                    times = response.meta.get("times", 0)
                    if times < 4:
                        yield response.request.replace(dont_filter=True, meta={{"times": times + 1}})
                        yield response.request.replace(dont_filter=True, meta={{"times": 9}})
        """
        crawl = self.start(spider, self.service().url).wait()
        self.assertEqual(site.paths(), ["/poll"] * 9, crawl.log)
        self.assert_gaps(site, 0.3)

    def test_timeout(self) -> None:
        """A request without a response ends its turn, so that the host goes on."""
        def hang(_: object) -> None:
            time.sleep(3)

        site = self.site(robots="User-agent: *\nCrawl-delay: 0.2\n", pages={"/hang": hang, "/1": page()})
        crawl = self.crawl([site.url + "/hang", site.url + "/1"], self.service(), CONCURRENT_REQUESTS_PER_DOMAIN=1, DOWNLOAD_TIMEOUT=1, RETRY_ENABLED=False)
        self.assertEqual(site.paths(), ["/hang", "/1"], crawl.log)
        self.assertLess(site.log[-1].at - site.log[-2].at, 3)
        self.assert_gaps(site, 0.2)

    def test_refused_connection(self) -> None:
        """A request that was not sent is not counted."""
        site = self.site(pages={"*": page()})
        service = self.service()
        self.crawl([site.url + "/1"], service)
        site.close()
        crawl = self.crawl([site.url + "/2"], service, RETRY_ENABLED=False)
        self.assertIn("Connection was refused by other side", crawl.log)
        self.assertEqual(service.stats()["totals"]["requests"], len(site.log), crawl.log)

    def test_thousand_requests(self) -> None:
        """Each request has one turn, and each page is requested once."""
        sites = [self.site(f"127.0.0.{n}", robots="User-agent: *\nDisallow: /no\n", pages={"*": page()}) for n in range(1, 6)]
        urls = [f"{site.url}/{'no/' if n % 10 == 0 else ''}{n}" for n in range(200) for site in sites]
        service = self.service()
        crawl = self.crawl(urls, service, timeout=120, LOG_LEVEL="WARNING")
        for site in sites:
            self.assertEqual(sorted(site.paths()), sorted(f"/{n}" for n in range(200) if n % 10), crawl.log[-3000:])
        totals = service.stats()["totals"]
        self.assertEqual((totals["requests"], totals["denied"]), (sum(len(site.log) for site in sites), 100))
        self.assertEqual(crawl.stats()["robotstxt/forbidden"], 100)


class Hosts(Case):
    """Hosts that wait, and crawls that are stopped."""

    def test_slow_hosts(self) -> None:
        """Sixteen hosts with a long delay do not stop another one, whose pages are found one after the
        other. Ctrl-C ends the waits, and the service has their places back."""
        slow = [self.site(f"127.0.0.{n}", robots="User-agent: *\nCrawl-delay: 600\n") for n in range(2, 18)]
        fast = self.site(pages={f"/{n}": page(f"/{n + 1}") for n in range(40)})
        spider = f"""
            import scrapy

            class MySpider(scrapy.Spider):
                name = "test"

                def start_requests(self):
                    for n in range(40):
                        for url in {[site.url for site in slow]!r}:
                            yield scrapy.Request(f"{{url}}/{{n}}", self.parse)
                    yield scrapy.Request("{fast.url}/0", self.parse)

                def parse(self, response):
                    yield from response.follow_all(css="a", callback=self.parse)
        """
        service = self.service()
        crawl = self.start(spider, service.url)
        wait_until(lambda: len(fast.paths()) > 30)
        self.assertEqual([hit.path for site in slow for hit in site.log], ["/robots.txt"] * 16)
        crawl.interrupt()
        crawl.wait(10)
        self.assertEqual(sum(host.get("waiting", 0) for host in service.stats()["hosts"]), 0)
        self.assertEqual(crawl.stats()["finish_reason"], "shutdown")
        self.assertEqual([hit.path for site in slow for hit in site.log], ["/robots.txt"] * 16)

    def test_interrupt_gives_turns_back(self) -> None:
        """After Ctrl-C during a request, the host gets its next turn without waiting for one to expire.
        A second Ctrl-C kills the crawl, and also answers the turn."""
        for times in (1, 2):
            site = self.site(robots="User-agent: *\nCrawl-delay: 0.2\n", pages={"/slow": lambda _: time.sleep(4) or page(), "*": page()})
            service = self.service()
            crawl = self.start(requesting([site.url + "/slow", site.url + "/1"]), service.url, CONCURRENT_REQUESTS_PER_DOMAIN=1)
            wait_until(lambda: "/slow" in site.paths())
            for _ in range(times):
                crawl.interrupt()
                time.sleep(1)
            crawl.wait(20)
            began = time.monotonic()
            self.assertIn("turn", service.post("/v1/turns", {"url": site.url + "/2", "agent": AGENT, "wait": 30}))
            self.assertLess(time.monotonic() - began, 3, crawl.log[-3000:])
            self.assertEqual(site.paths(), ["/slow"])

    def test_continued(self) -> None:
        """With JOBDIR, a crawl that was stopped loses no page that waited for its turn."""
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\n", pages={"*": page()})
        service = self.service()
        spider = requesting([f"{site.url}/{n}" for n in range(14)]).replace("dont_filter=True, ", "")
        first = self.start(spider, service.url, JOBDIR=self.folder + "/job")
        wait_until(lambda: len(site.paths()) >= 4)
        first.interrupt()
        first.wait(10)
        self.assertLess(len(site.paths()), 8)
        second = self.start(spider, service.url, JOBDIR=self.folder + "/job").wait(150)  # a turn of the first crawl that could not be given back expires after a minute
        self.assertEqual(sorted(site.paths()), sorted(f"/{n}" for n in range(14)), first.log[-6000:] + second.log[-6000:])
        self.assert_gaps(site, 0.3)


class TheService(Case):
    """What happens when the service is away, or is something else."""

    def test_killed(self) -> None:
        """While the service is away, nothing is sent. When it is back, the crawl goes on."""
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.2\n", pages={"*": page()})
        service = self.service()
        crawl = self.start(requesting([f"{site.url}/{n}" for n in range(25)]), service.url)
        wait_until(lambda: len(site.paths()) >= 5)
        service.kill()
        time.sleep(0.5)  # a request that had its turn may arrive
        before = len(site.log)
        time.sleep(2)
        self.assertEqual(len(site.log), before)
        service.start()
        crawl.wait()
        self.assertEqual(sorted(site.paths()), sorted(f"/{n}" for n in range(25)), crawl.log[-5000:])
        self.assert_gaps(site, 0.2)
        self.assertEqual(crawl.log.count("No request is sent until collyrobots serve at"), 1, crawl.log[-5000:])
        self.assertEqual(crawl.log.count("can be used again"), 1)

    def test_started_later(self) -> None:
        """A crawl may be started before the service, and stopped while it waits for it."""
        site = self.site(pages={"*": page()})
        service = self.service()
        service.kill()
        stopped = self.start(requesting([site.url + "/1"]), service.url)
        wait_until(lambda: "No request is sent until" in stopped.log)
        stopped.interrupt()
        stopped.wait(10)
        self.assertEqual(stopped.stats()["finish_reason"], "shutdown")
        self.assertEqual(site.log, [])
        crawl = self.start(requesting([site.url + "/1"]), service.url)
        wait_until(lambda: "No request is sent until" in crawl.log)
        service.start()
        crawl.wait()
        self.assertEqual(site.paths(), ["/1"])

    def test_rubbish(self) -> None:
        """Nothing is sent because of a response that the service would not give, which is logged once."""
        site = self.site(pages={"*": page()})
        replies = [(200, {}, page()), (201, {}, '{"turn": 7}'), (201, {}, "[]"), (404, {}, '{"error": "x"}'),
                   (500, {"Retry-After": "soon"}, ""), (403, {}, "no"), (302, {"Location": site.url}, ""), (204, {}, "")]
        asked: list[int] = []

        def rubbish(_: object) -> object:
            asked.append(len(asked))
            return replies[(len(asked) - 1) % len(replies)]

        other = self.site(pages={"*": rubbish})
        crawl = self.start(requesting([f"{site.url}/{n}" for n in range(4)]), other.url)
        wait_until(lambda: len(asked) > 2 * len(replies))
        crawl.interrupt()
        crawl.wait(10)
        self.assertEqual(site.log, [])
        self.assertEqual(crawl.log.count("No request is sent until"), 1, crawl.log[-5000:])
        self.assertNotIn("Traceback", crawl.log)

    def test_token(self) -> None:
        """The token is read from its file. While it is wrong, nothing is sent."""
        site = self.site(pages={"*": page()})
        right, own = self.folder + "/right", self.folder + "/own"
        for name, token in ((right, "0123456789abcdef\n"), (own, "wrong\n")):
            with open(name, "w", encoding="utf-8") as f:
                f.write(token)
        crawl = self.start(requesting([site.url + "/1"]), self.service("-token-file", right).url, COLLYROBOTS_TOKEN_FILE=own)
        wait_until(lambda: "status 401" in crawl.log)
        time.sleep(2)
        self.assertEqual(site.log, [])
        os.replace(right, own)
        crawl.wait()
        self.assertEqual(site.paths(), ["/1"])
        self.assertEqual(crawl.log.count("status 401: the request has no valid token"), 1)

    def test_socket(self) -> None:
        site = self.site(robots="User-agent: *\nDisallow: /no\n", pages={"*": page()})
        self.crawl([site.url + "/1", site.url + "/no"], self.service(address=f"unix:{self.folder}/s"))
        self.assertEqual(site.paths(), ["/1"])

    def test_mistakes(self) -> None:
        """A request that the service cannot take fails, and the log says why."""
        site = self.site(pages={"*": page()})
        crawl = self.crawl([site.url + "/1"], self.service(), COLLYROBOTS_PURPOSE="fun")
        self.assertIn("WARNING: Denied by collyrobots: <GET", crawl.log)
        self.assertIn("purpose fun: use search, ai-use or train-ai", crawl.log)
        crawl = self.crawl([f"{site.url}/{'x' * 70000}", site.url + "/2"], self.service(), URLLENGTH_LIMIT=0)
        self.assertIn("the body has more than 65536 bytes", crawl.log)
        self.assertEqual(site.paths(), ["/2"])


class Framework(Case):
    """What the parts of Scrapy do with the handler."""

    def test_purpose(self) -> None:
        """The purpose decides, and the spider gets what the page says about itself."""
        site = self.site(robots="User-agent: *\nContent-Usage: /news train-ai=n\n",
                         pages={"*": (200, {"X-Robots-Tag": "noindex", "Content-Type": "text/html"}, page())})
        crawl = self.crawl([site.url + "/news", site.url + "/1"], self.service(), COLLYROBOTS_PURPOSE="search,train-ai")
        self.assertEqual(site.paths(), ["/1"], crawl.log)
        self.assertEqual(crawl.stats()["collyrobots/denied/usage"], 1)
        self.assertIn("which says {'robots_tags': [{'name': 'noindex', 'source': 'x-robots-tag'}]", crawl.log)

    def test_robots_user_agent(self) -> None:
        """ROBOTSTXT_USER_AGENT is the name that is looked up, as without the handler."""
        site = self.site(robots="User-agent: OtherBot\nDisallow: /no\n", pages={"*": page()})
        self.crawl([site.url + "/no", site.url + "/1"], self.service(), ROBOTSTXT_USER_AGENT="OtherBot")
        self.assertEqual(site.paths(), ["/1"])

    def test_dont_obey_robotstxt(self) -> None:
        site = self.site(robots="User-agent: *\nDisallow: /no\n", pages={"*": page()})
        spider = requesting([site.url + "/no", site.url + "/no/2", site.url + "/1"], meta='{"dont_obey_robotstxt": True}')
        crawl = self.start(spider, self.service().url).wait()
        self.assertEqual(site.paths(), ["/1"])
        self.assertEqual(crawl.log.count("dont_obey_robotstxt has no effect"), 1)

    def test_cache(self) -> None:
        """A response from the cache takes no turn."""
        site = self.site(pages={"*": page()})
        service = self.service()
        for _ in range(2):
            crawl = self.crawl([f"{site.url}/{n}" for n in range(3)], service, HTTPCACHE_ENABLED=True, HTTPCACHE_DIR=self.folder + "/cache")
            self.assertEqual(crawl.stats()["response_received_count"], 3)
        self.assertEqual(len(site.paths()), 3)
        self.assertEqual(service.stats()["totals"]["requests"], 4)

    def test_proxy(self) -> None:
        """A request through a proxy has the turn of its host, whose rules apply."""
        site = self.site("127.0.0.2", robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n")
        proxy = self.site(pages={"*": page()})
        urls = [site.url + path for path in ("/1", "/no", "/2", "/3")]
        crawl = self.start(requesting(urls, meta=f'{{"proxy": "{proxy.url}"}}'), self.service().url).wait()
        self.assertEqual(sorted(hit.path for hit in proxy.log), [site.url + path for path in ("/1", "/2", "/3")], crawl.log)
        self.assert_gaps(proxy, 0.3)
        self.assertEqual([hit.path for hit in site.log], ["/robots.txt"])

    def test_other_schemes(self) -> None:
        """The handlers of other schemes are those of Scrapy, and take no turn."""
        name = self.folder + "/page.html"
        with open(name, "w", encoding="utf-8") as f:
            f.write(page())
        service = self.service()
        crawl = self.crawl(["file://" + name, "data:,hello"], service)
        self.assertEqual(crawl.log.count("[test] INFO: got 200"), 2, crawl.log)
        self.assertEqual(service.stats()["hosts"], [])

    def test_asyncio_reactor(self) -> None:
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n", pages={"*": page()})
        reactor = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"
        crawl = self.crawl([site.url + path for path in ("/1", "/no", "/2")], self.service(), TWISTED_REACTOR=reactor)
        self.assertEqual(sorted(site.paths()), ["/1", "/2"], crawl.log)
        self.assert_gaps(site, 0.3)

    def test_images(self) -> None:
        """The requests of a media pipeline, which do not pass the scheduler, have turns as well."""
        site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n", pages={"*": page()})
        spider = f"""
            import scrapy

            class MySpider(scrapy.Spider):
                name = "test"
                start_urls = ["{site.url}/start"]

                def parse(self, response):
                    yield {{"file_urls": [response.urljoin(name) for name in ("/1", "/no", "/2", "/3")]}}
        """
        crawl = self.start(spider, self.service().url, ITEM_PIPELINES={"scrapy.pipelines.files.FilesPipeline": 1}, FILES_STORE=self.folder + "/files").wait()
        self.assertEqual(sorted(site.paths()), ["/1", "/2", "/3", "/start"], crawl.log)
        self.assert_gaps(site, 0.3)


if __name__ == "__main__":
    unittest.main()
