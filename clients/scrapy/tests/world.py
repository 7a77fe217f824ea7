"""Sites, a service and crawls for the tests. The access logs of the sites decide."""
from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Callable
from urllib.request import ProxyHandler, Request, build_opener

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[2]
AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


class Hit:
    """A request that a site has got."""

    def __init__(self, path: str, at: float, agent: str) -> None:
        self.path = path
        self.at = at  # by the clock of the site
        self.agent = agent

    def __repr__(self) -> str:
        return f"{self.at % 1000:.3f} {self.path}"


class Site:
    """A web site on a loopback address. Each address is a host of its own for Scrapy."""

    def __init__(self, address: str = "127.0.0.1", robots: str = "", pages: dict[str, Any] | None = None) -> None:
        self.log: list[Hit] = []
        self.pages: dict[str, Any] = {"/robots.txt": robots, **(pages or {})}
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                site.log.append(Hit(self.path, time.monotonic(), self.headers.get("User-Agent", "")))
                path = self.path.split("://", 1)[-1]
                path = path if path.startswith("/") else "/" + path.partition("/")[2]  # of a request to a proxy
                page = site.pages.get(path, site.pages.get("*", (404, {}, "")))
                if callable(page):
                    page = page(self)
                if page is None:
                    return
                status, headers, body = page if isinstance(page, tuple) else (200, {"Content-Type": "text/html"}, page)
                content = body.encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 512
            daemon_threads = True

            def handle_error(self, *_: Any) -> None:  # a client that has gone away
                pass

        self.server = Server((address, 0), Handler)
        self.url = f"http://{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def paths(self) -> list[str]:
        """Returns the paths of the requests except robots.txt."""
        return [hit.path for hit in self.log if hit.path != "/robots.txt"]

    def gaps(self) -> list[float]:
        """Returns the seconds between the requests, with those for robots.txt."""
        return [after.at - before.at for before, after in zip(self.log, self.log[1:])]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Service:
    """The service collyrobots serve."""

    def __init__(self, *flags: str, address: str = "") -> None:
        self.address = address or f"127.0.0.1:{free_port()}"
        self.flags = flags
        self.start()

    @property
    def url(self) -> str:
        return self.address if self.address.startswith("unix:") else "http://" + self.address

    def start(self) -> None:
        self.process = subprocess.Popen(
            [binary(), "serve", "-listen", self.address, "-allow-private", *self.flags], stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()  # type: ignore[union-attr]
        if not line.startswith("Listening on "):
            raise RuntimeError(line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()  # type: ignore[union-attr]

    def post(self, path: str, body: Any) -> Any:
        with OPENER.open(Request(self.url + path, json.dumps(body).encode()), timeout=60) as r:
            return json.loads(r.read() or "{}")

    def stats(self) -> Any:
        with OPENER.open(self.url + "/v1/stats", timeout=60) as r:
            return json.loads(r.read())


OPENER = build_opener(ProxyHandler({}))
_binary: list[str] = []


def binary() -> str:
    """Returns the path of the command, which is built once."""
    if not _binary:
        name = os.environ.get("COLLYROBOTS_COMMAND")
        if not name:
            folder = tempfile.TemporaryDirectory()
            unittest.addModuleCleanup(folder.cleanup)
            name = folder.name + "/collyrobots"
            subprocess.run(["go", "build", "-o", name, "."], cwd=ROOT / "cmd" / "collyrobots", check=True)
        _binary.append(name)
    return _binary[0]


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Crawl:
    """A spider that runs in a process of its own, with a log and statistics."""

    def __init__(self, spider: str, settings: dict[str, Any], folder: str) -> None:
        self.stats_file = Path(folder) / f"stats{time.monotonic_ns()}.json"
        program = textwrap.dedent(spider) + textwrap.dedent(f"""
            if __name__ == "__main__":
                import json, sys
                sys.path.insert(0, {str(FOLDER.parent)!r})
                from scrapy.crawler import CrawlerProcess
                from scrapy.settings import Settings
                import collyrobots_scrapy
                settings = Settings({settings!r})
                if {settings.get("ADDON", True)!r}:
                    collyrobots_scrapy.Addon().update_settings(settings)
                process = CrawlerProcess(settings)
                crawler = process.create_crawler(MySpider)
                process.crawl(crawler)
                process.start()
                with open({str(self.stats_file)!r}, "w") as f:
                    json.dump(crawler.stats.get_stats(), f, default=str)
        """)
        file = Path(folder) / "spider.py"
        file.write_text(program)
        self.log_file = self.stats_file.with_suffix(".log")
        with open(self.log_file, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([sys.executable, str(file)], stdout=log, stderr=subprocess.STDOUT)

    @property
    def log(self) -> str:
        """What the crawl has written so far."""
        return self.log_file.read_text(encoding="utf-8")

    def wait(self, timeout: float = 60) -> "Crawl":
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"the crawl has not ended within {timeout} s:\n{self.log[-6000:]}") from None
        return self

    def stats(self) -> dict[str, Any]:
        if not self.stats_file.exists():
            raise AssertionError("the crawl has no statistics:\n" + self.log[-6000:])
        return json.loads(self.stats_file.read_text())

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)


def wait_until(condition: Callable[[], bool], timeout: float = 30) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("timeout")
        time.sleep(0.02)


class Case(unittest.TestCase):
    """A test with sites, services and crawls that end with it."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def site(self, *args: Any, **kwargs: Any) -> Site:
        site = Site(*args, **kwargs)
        self.addCleanup(site.close)
        return site

    def service(self, *flags: str, address: str = "") -> Service:
        service = Service("-delay", "0", *flags, address=address)
        self.addCleanup(service.kill)
        return service

    def start(self, spider: str, service: str, **settings: Any) -> Crawl:
        values = {"COLLYROBOTS_SERVICE": service, "USER_AGENT": AGENT, "LOG_LEVEL": "DEBUG", "TELNETCONSOLE_ENABLED": False}
        crawl = Crawl(spider, {**values, **settings}, self.folder)
        self.addCleanup(crawl.process.wait)
        self.addCleanup(crawl.process.kill)
        return crawl

    def crawl(self, urls: list[str], service: Service, timeout: float = 60, **settings: Any) -> Crawl:
        """Requests some URLs, each once."""
        return self.start(requesting(urls), service.url, **settings).wait(timeout)

    def assert_gaps(self, site: Site, delay: float) -> None:
        """Checks that no gap is shorter than the delay. The delay counts from the answer to a turn, which
        follows the entry in the log, so only rounding can make a gap shorter.
        """
        short = [gap for gap in site.gaps() if gap < delay - 0.001]
        self.assertEqual(short, [], site.log)


def requesting(urls: list[str], meta: str = "{}") -> str:
    """Returns a spider that requests some URLs."""
    return f"""
        import scrapy

        class MySpider(scrapy.Spider):
            name = "test"
            handle_httpstatus_list = [403, 404]

            def start_requests(self):
                for url in {urls!r}:
                    yield scrapy.Request(url, self.parse, errback=self.failed, dont_filter=True, meta={meta})

            def parse(self, response):
                self.logger.info("got %s %s, which says %s", response.status, response.url, response.meta.get("collyrobots"))

            def failed(self, failure):
                self.logger.info("failed %s: %s", failure.request.url, failure.value)
    """
