"""Tests the settings, in a project that Scrapy makes, and the interface of newer versions of Scrapy."""
from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scrapy.settings import Settings

import collyrobots_scrapy
from world import AGENT, Case, requesting

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    """Returns the blocks of Python in the README."""
    return re.findall(r"```python\n(.*?)```", README, re.S)


class AddonTest(unittest.TestCase):
    def update(self, **values: object) -> Settings:
        settings = Settings(values)
        collyrobots_scrapy.Addon().update_settings(settings)
        return settings

    def test_project(self) -> None:
        """The values of the template of projects are replaced."""
        settings = self.update(ROBOTSTXT_OBEY=True, DOWNLOAD_DELAY=1, CONCURRENT_REQUESTS_PER_DOMAIN=1)
        self.assertFalse(settings.getbool("ROBOTSTXT_OBEY"))
        self.assertEqual((settings.getint("DOWNLOAD_DELAY"), settings.getint("CONCURRENT_REQUESTS")), (0, 256))
        self.assertEqual(settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1)
        self.assertEqual(self.update(CONCURRENT_REQUESTS=1000).getint("CONCURRENT_REQUESTS"), 1000)

    def test_handlers(self) -> None:
        """Handlers of the project are wrapped, and other schemes keep theirs."""
        own = {"http": "own.Handler", "https": None, "sftp": "own.Sftp"}
        settings = self.update(DOWNLOAD_HANDLERS=own, DOWNLOAD_HANDLERS_BY_NAME={"browser": "own.Browser"})
        before = Settings().getwithbase("DOWNLOAD_HANDLERS")
        after = settings.getwithbase("DOWNLOAD_HANDLERS")
        self.assertEqual((after["http"], after["https"], after["sftp"]), (collyrobots_scrapy.PATH, None, "own.Sftp"))
        self.assertEqual((after["ftp"], after["s3"]), (before["ftp"], before["s3"]))
        self.assertEqual(settings.getdict("DOWNLOAD_HANDLERS_BY_NAME"), {"browser": collyrobots_scrapy.PATH})
        self.assertEqual(settings.getdict("COLLYROBOTS_HANDLERS"), {"http": "own.Handler", "browser": "own.Browser"})
        settings = Settings()
        settings.set("DOWNLOAD_HANDLERS", {"https": "own.Handler"}, priority="spider")
        collyrobots_scrapy.Addon().update_settings(settings)
        after = settings.getwithbase("DOWNLOAD_HANDLERS")
        self.assertEqual((after["http"], after["https"]), (collyrobots_scrapy.PATH, collyrobots_scrapy.PATH))
        self.assertEqual(settings.getdict("COLLYROBOTS_HANDLERS"), {"http": before["http"], "https": "own.Handler"})

    def test_readme(self) -> None:
        """The lines for versions without add-ons are those that Addon sets."""
        lines: dict[str, object] = {}
        exec(blocks()[1], lines)
        lines.pop("__builtins__")
        self.assertEqual(lines, collyrobots_scrapy.SETTINGS)


# A spider as in a first project: it takes the sayings of each page, and follows the link to the next one.
SAYINGS = '''
import scrapy


class SayingsSpider(scrapy.Spider):
    name = "sayings"
    start_urls = ["START"]

    def parse(self, response):
        for saying in response.css("div.saying"):
            yield {"text": saying.css("p::text").get(), "by": saying.css("b::text").get()}
        yield from response.follow_all(css="a.next, a.author", callback=self.parse)
'''


class Tutorial(Case):
    def test_first_project(self) -> None:
        """A project with the settings of the template and the lines of the README is polite."""
        pages = {f"/page/{n}": f'<div class="saying"><p>saying {n}</p><b>author {n}</b></div><a class="next" href="/page/{n + 1}">next</a>'
                               f'<a class="author" href="/login/{n}">author</a>' for n in range(1, 9)}
        site = self.site(robots="User-agent: *\nDisallow: /login\nCrawl-delay: 0.3\n", pages=pages)
        service = self.service()
        scrapy = [sys.executable, "-m", "scrapy"]
        project = Path(self.folder) / "first"
        subprocess.run([*scrapy, "startproject", "-s", "LOG_LEVEL=WARNING", "first", str(project)], check=True, stdout=subprocess.DEVNULL)
        (project / "first" / "spiders" / "sayings.py").write_text(SAYINGS.replace("START", site.url + "/page/1"))
        with open(project / "first" / "settings.py", "a", encoding="utf-8") as f:
            f.write(blocks()[1] + f'USER_AGENT = "{AGENT}"\nCOLLYROBOTS_SERVICE = "{service.url}"\n')
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
        ran = subprocess.run([*scrapy, "crawl", "sayings", "-O", "items.json"], cwd=project, env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual([hit.path for hit in site.log], ["/robots.txt"] + [f"/page/{n}" for n in range(1, 10)], ran.stderr[-5000:])
        self.assert_gaps(site, 0.3)
        self.assertEqual(len(json.loads((project / "items.json").read_text())), 8)
        self.assertIn("'robotstxt/forbidden': 8", ran.stderr)


# The interface of the download handlers of Scrapy 2.14, in this older version. Only the calls differ: the
# classes below call the coroutines of the handler as that version does, and give it a handler to wrap that
# has coroutines. The spider, the requests and the site are real.
NEWER = """
import importlib

import scrapy

import collyrobots_scrapy

scrapy.version_info = (2, 14, 0)
collyrobots_scrapy = importlib.reload(collyrobots_scrapy)

from scrapy.core.downloader.handlers.http11 import HTTP11DownloadHandler
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future


class Caller(collyrobots_scrapy.Handler):
    def download_request(self, request, spider):
        self.crawler.spider = spider
        return deferred_from_coro(super().download_request(request))

    def close(self):
        return deferred_from_coro(super().close())


class Wrapped(HTTP11DownloadHandler):
    async def download_request(self, request):
        return await maybe_deferred_to_future(super().download_request(request, None))

    async def close(self):
        await maybe_deferred_to_future(super().close())
"""


class NewerInterface(Case):
    def test_coroutines(self) -> None:
        """The handler works with coroutines, with and without asyncio."""
        for reactor in ("asyncioreactor.AsyncioSelectorReactor", "epollreactor.EPollReactor"):
            site = self.site(robots="User-agent: *\nCrawl-delay: 0.3\nDisallow: /no\n", pages={"*": "x", "/a": (302, {"Location": "/b"}, "")})
            (Path(self.folder) / "newer.py").write_text(NEWER)
            handlers = {"http": "newer.Caller"}
            crawl = self.start(requesting([site.url + path for path in ("/1", "/a", "/no")]), self.service().url, ADDON=False,
                               **{**collyrobots_scrapy.SETTINGS, "DOWNLOAD_HANDLERS": handlers, "COLLYROBOTS_HANDLERS": {"http": "newer.Wrapped"}},
                               TWISTED_REACTOR="twisted.internet." + reactor).wait()
            self.assertEqual(sorted(site.paths()), ["/1", "/a", "/b"], crawl.log)
            self.assert_gaps(site, 0.3)
            self.assertNotIn("Traceback", crawl.log)
            self.assertEqual(crawl.stats()["robotstxt/forbidden"], 1)


if __name__ == "__main__":
    unittest.main()
