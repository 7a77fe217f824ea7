"""Makes Scrapy polite with the service collyrobots serve.

The service says whether and when a request may be sent, for all crawlers that use it. This module asks
it before each request that goes on the wire, also for redirects and retries, and tells it what the site
has answered. A project enables it with one setting, ADDONS = {"collyrobots_scrapy.Addon": 500}, and
README.md has the others.
"""
from __future__ import annotations

import inspect
import json
import logging
from typing import Any, Iterator
from weakref import WeakKeyDictionary

from scrapy import Request, Spider, version_info
from scrapy.exceptions import IgnoreRequest, NotConfigured
from scrapy.http import Response
from scrapy.pqueues import DownloaderAwarePriorityQueue
from scrapy.settings import BaseSettings, get_settings_priority
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred, DeferredList, ensureDeferred, maybeDeferred, succeed
from twisted.internet.endpoints import UNIXClientEndpoint
from twisted.internet.task import LoopingCall, deferLater
from twisted.web.client import Agent, HTTPConnectionPool, readBody
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory, IBodyProducer
from zope.interface import implementer

logger = logging.getLogger(__name__)

PAUSE = 1.0  # seconds between two attempts to reach the service
MAX_TURN = 60.0  # seconds after which the service ends every turn, so that no answer can reach it
MAX_HEADERS = 16 << 10  # bytes of the headers in an answer, whose JSON may have 64 KiB


class Addon:
    """Sets the settings of Scrapy, for the setting ADDONS."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Wraps the download handlers, and leaves robots.txt and the pace to the service.

        The template of projects sets some of these settings with the priority "project". Those of a
        spider and of the command line have precedence, except the handlers.
        """
        for name, value in SETTINGS.items():
            if name == "CONCURRENT_REQUESTS":
                value = max(value, settings.getint(name))
            if name != "DOWNLOAD_HANDLERS" and settings.get(name) != value:
                logger.info("collyrobots_scrapy sets %s to %r in place of %r", name, value, settings.get(name))
                settings.set(name, value, priority="project")
        handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
        self.wrap(settings, "DOWNLOAD_HANDLERS", {scheme: handlers.get(scheme) for scheme in ("http", "https")})
        self.wrap(settings, "DOWNLOAD_HANDLERS_BY_NAME", settings.getdict("DOWNLOAD_HANDLERS_BY_NAME"))

    def wrap(self, settings: BaseSettings, name: str, handlers: dict[str, Any]) -> None:
        """Replaces some handlers of a setting, and keeps them in COLLYROBOTS_HANDLERS."""
        own, wrapped = settings.getdict(name), settings.getdict("COLLYROBOTS_HANDLERS")
        for key, handler in handlers.items():
            if handler not in (None, PATH, Handler):
                own[key] = PATH
                wrapped[key] = handler
        for setting, value in ((name, own), ("COLLYROBOTS_HANDLERS", wrapped)):
            priority = max(get_settings_priority("project"), settings.getpriority(setting) or 0)
            settings.set(setting, value, priority=priority)


class Queue(DownloaderAwarePriorityQueue):
    """Keeps requests in the scheduler while their host has enough of them.

    Requests that wait for their turns count as active. Without this limit, those of one slow host
    could be all that CONCURRENT_REQUESTS allows, and no other host would get any. The limit is
    CONCURRENT_REQUESTS_PER_DOMAIN.
    """

    def pop(self) -> Request | None:
        """Returns the next request, or None if each host has enough."""
        limit = max(self.crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN"), 1)
        slots = self.crawler.engine.downloader.slots
        if not any(slot not in slots or len(slots[slot].active) < limit for slot in self.pqueues):
            return None
        return super().pop()


class Away(Exception):
    """The service cannot be reached, or its response cannot be understood."""

    def __init__(self, why: str, pause: float = PAUSE) -> None:
        super().__init__(why)
        self.pause = pause


@implementer(IBodyProducer)
class _Body:
    """The body of a request to the service."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.length = len(content)

    def startProducing(self, consumer: Any) -> Deferred[None]:
        consumer.write(self.content)
        return succeed(None)

    def pauseProducing(self) -> None:
        pass

    def resumeProducing(self) -> None:
        pass

    def stopProducing(self) -> None:
        pass


@implementer(IAgentEndpointFactory)
class _Socket:
    """Connects to a Unix socket, whatever the URL is."""

    def __init__(self, reactor: Any, path: str) -> None:
        self.endpoint = UNIXClientEndpoint(reactor, path)

    def endpointForURI(self, uri: Any) -> UNIXClientEndpoint:
        return self.endpoint


class Service:
    """The service, as one crawler uses it. All coroutines are those of Twisted."""

    def __init__(self, crawler: Any) -> None:
        from twisted.internet import reactor

        settings = crawler.settings
        self.crawler = crawler
        self.reactor: Any = reactor
        self.address = settings.get("COLLYROBOTS_SERVICE", "http://127.0.0.1:8094").rstrip("/")
        self.token_file = settings.get("COLLYROBOTS_TOKEN_FILE")
        self.is_away = False
        self.is_stopping = False
        self.waiting: set[Deferred[Any]] = set()  # requests for a turn
        self.open: set[str] = set()  # the turns that are not answered
        self.pool = HTTPConnectionPool(reactor)
        self.pool.maxPersistentPerHost = settings.getint("CONCURRENT_REQUESTS")
        self.url = self.address
        self.agent = Agent(reactor, pool=self.pool)
        if self.address.startswith("unix:"):
            self.url = "http://localhost"
            self.agent = Agent.usingEndpointFactory(reactor, _Socket(reactor, self.address[5:]), pool=self.pool)
        self.watch = LoopingCall(self.stop_waiting)
        self.watch.start(0.5, now=False)
        self.trigger = reactor.addSystemEventTrigger("before", "shutdown", self.give_back)

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Sends a request, and returns the status and the object of the response. Raises Away."""
        try:
            content = json.dumps(body, ensure_ascii=False).encode()
            response = await self.agent.request(b"POST", (self.url + path).encode(), self.headers(), _Body(content))
            text = await readBody(response).addTimeout(10, self.reactor)
        except Exception as e:
            raise Away(describe(e)) from e
        try:
            reply = json.loads(text or "{}")
            error = reply.get("error", "")
        except (ValueError, AttributeError):
            raise Away(f"status {response.code} without a JSON object") from None
        if response.code in (401, 421, 429) or response.code >= 500:
            after = response.headers.getRawHeaders("Retry-After", [""])[0]
            raise Away(f"status {response.code}: {error}", float(after) if after.isdecimal() else PAUSE)
        return response.code, reply

    def headers(self) -> Headers:
        """Returns the headers of a request. The token is read each time, so that it may be changed."""
        headers = Headers({"Content-Type": ["application/json"]})
        if self.token_file:
            with open(self.token_file, encoding="utf-8") as f:
                headers.addRawHeader("Authorization", "Bearer " + f.read().strip())
        return headers

    async def take(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Asks for a turn, and returns the status and the reply of the service.

        The status is 201 if the turn was granted, 400, 403 or 413 if it was not, and 0 if the crawl
        stops. While the service cannot be used, this waits.
        """
        if self.is_stopping:
            return 0, {}
        waiting = ensureDeferred(self.ask(body))
        self.waiting.add(waiting)
        try:
            return await waiting
        except Exception:
            if self.is_stopping:
                return 0, {}
            raise
        finally:
            self.waiting.discard(waiting)

    async def ask(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Is take without the end of the crawl."""
        while True:
            try:
                status, reply = await self.post("/v1/turns", body)
                if status == 201 and isinstance(reply.get("turn"), str) or status in (400, 403, 413) and "error" in reply:
                    self.tell_back()
                    return status, reply
                raise Away(f"status {status} to a request for a turn")
            except Away as e:
                self.tell_away(e)
                if self.is_stopping:
                    raise
                await deferLater(self.reactor, max(e.pause, PAUSE))

    async def answer(self, turn: str, body: dict[str, Any]) -> dict[str, Any]:
        """Answers a turn, and returns what the site says about the page.

        An answer that does not reach the service is repeated until the turn has expired. A service that
        was started again does not know the turn.
        """
        began = self.reactor.seconds()
        while True:
            try:
                status, reply = await self.post("/v1/turns/" + turn, body)
                if status not in (200, 204):
                    logger.debug("The answer to a turn was not taken: %s", reply.get("error"))
                return reply if status == 200 else {}
            except Away as e:
                self.tell_away(e)
                if self.is_stopping or self.reactor.seconds() - began > MAX_TURN:
                    return {}
                await deferLater(self.reactor, PAUSE)

    def tell_away(self, e: Away) -> None:
        """Logs that the service cannot be used, unless that is known."""
        if not self.is_away:
            self.is_away = True
            logger.warning("No request is sent until collyrobots serve at %s can be used: %s", self.address, e)

    def tell_back(self) -> None:
        """Logs that the service can be used again, if that is new."""
        if self.is_away:
            self.is_away = False
            logger.warning("collyrobots serve at %s can be used again", self.address)

    def stop_waiting(self) -> None:
        """Gives the places of the requests that wait for a turn back, if the crawl stops."""
        engine = self.crawler.engine
        slot = getattr(engine, "slot", None) or getattr(engine, "_slot", None)
        if slot is None or not slot.closing:
            return
        self.is_stopping = True
        for waiting in list(self.waiting):
            waiting.cancel()

    def give_back(self) -> Deferred[Any]:
        """Answers the open turns of a crawl that is killed with a second Ctrl-C."""
        posts = [ensureDeferred(self.post("/v1/turns/" + turn, {"error": "the crawl was stopped"})) for turn in self.open]
        return DeferredList(posts, consumeErrors=True).addTimeout(1, self.reactor).addErrback(lambda _: None)

    def close(self) -> Deferred[Any]:
        """Closes the connections, within a second."""
        if self.watch.running:
            self.watch.stop()
            self.reactor.removeSystemEventTrigger(self.trigger)
        return self.pool.closeCachedConnections().addTimeout(1, self.reactor).addErrback(lambda _: None)


# The services of crawlers. The handlers for http and https share one.
_services: WeakKeyDictionary[Any, Service] = WeakKeyDictionary()


class _Handler:
    """Takes a turn before each request, lets another download handler send it, and answers the turn."""

    lazy = False

    def __init__(self, crawler: Any) -> None:
        self.crawler = crawler
        self.settings: BaseSettings = crawler.settings
        if not self.settings.getbool("TWISTED_REACTOR_ENABLED", True):
            raise NotConfigured("collyrobots_scrapy needs a Twisted reactor")
        if crawler not in _services:
            _services[crawler] = Service(crawler)
        self.service = _services[crawler]
        self.purpose = self.settings.getlist("COLLYROBOTS_PURPOSE")
        self.inner: dict[str, Any] = {}  # the wrapped handlers
        self.warned = False

    @classmethod
    def from_crawler(cls, crawler: Any) -> Any:
        return cls(crawler)

    async def download(self, request: Request, spider: Spider) -> Response:
        """Sends a request when it is its turn."""
        if not request.url.startswith(("http:", "https:")):
            return await self.send(request, spider)
        turn = await self.take(request, spider)
        self.service.open.add(turn)
        answer = {"error": "the request was canceled"}
        try:
            response = await self.send(request, spider)
            answer = answer_of(response)
        except Exception as e:
            answer = failure_of(e)
            raise
        finally:
            request.meta["collyrobots"] = await self.service.answer(turn, answer)
            self.service.open.discard(turn)
        return response

    async def take(self, request: Request, spider: Spider) -> str:
        """Returns the ID of a turn. Raises IgnoreRequest if there is none."""
        if request.meta.get("dont_obey_robotstxt") and not self.warned:
            self.warned = True
            logger.warning("dont_obey_robotstxt has no effect with collyrobots_scrapy: %s", request, extra={"spider": spider})
        agent = self.settings.get("ROBOTSTXT_USER_AGENT") or request.headers.get("User-Agent") or self.settings.get("USER_AGENT") or "Scrapy"
        body: dict[str, Any] = {"url": request.url, "agent": agent.decode("latin-1") if isinstance(agent, bytes) else agent}
        if self.purpose:
            body["purpose"] = self.purpose
        status, reply = await self.service.take(body)
        if status == 201:
            return reply["turn"]
        if status == 0:
            self.keep(request)
            raise IgnoreRequest("The crawl stops, so the request was not sent")
        decision = reply.get("decision")
        if decision:
            self.crawler.stats.inc_value("robotstxt/forbidden")
        reason = decision.get("reason") if decision else "invalid"
        self.crawler.stats.inc_value(f"collyrobots/denied/{reason}")
        level = logging.DEBUG if decision else logging.WARNING
        logger.log(level, "Denied by collyrobots: %s: %s", request, reply["error"], extra={"spider": spider})
        raise IgnoreRequest(f"Denied by collyrobots: {reply['error']}")

    async def send(self, request: Request, spider: Spider) -> Response:
        """Lets the wrapped handler send a request. It may have the interface of any version of Scrapy."""
        inner = self.inner_of(request)
        if inspect.iscoroutinefunction(inner.download_request):
            return await deferred_from_coro(inner.download_request(request))
        return await maybeDeferred(inner.download_request, request, spider)

    def inner_of(self, request: Request) -> Any:
        """Returns the wrapped handler for a request."""
        handlers = {**self.settings.getdict("DOWNLOAD_HANDLERS_BASE"), **self.settings.getdict("COLLYROBOTS_HANDLERS")}
        key = request.meta.get("download_handler")
        if key not in handlers:
            key = request.url.partition(":")[0]
        if key not in self.inner:
            cls = load_object(handlers[key])
            handler = cls.from_crawler(self.crawler) if hasattr(cls, "from_crawler") else cls()
            pool = getattr(handler, "_pool", None)
            if isinstance(pool, HTTPConnectionPool):
                pool.retryAutomatically = False  # Twisted would repeat a request without a turn
            self.inner[key] = handler
        return self.inner[key]

    def keep(self, request: Request) -> None:
        """Leaves a request that was not sent to the next run, if the crawl can be continued."""
        if self.settings.get("JOBDIR"):
            self.crawler.engine.crawl(request.replace(dont_filter=True))

    async def shut(self) -> None:
        """Closes the wrapped handlers and the connections to the service."""
        for inner in self.inner.values():
            closed = inner.close() if hasattr(inner, "close") else None
            if inspect.iscoroutine(closed):
                closed = deferred_from_coro(closed)
            if closed is not None:
                await closed
        await self.service.close()


if version_info >= (2, 14):

    class Handler(_Handler):
        """The download handler for http and https."""

        async def download_request(self, request: Request) -> Response:
            return await maybe_deferred_to_future(ensureDeferred(self.download(request, self.crawler.spider)))

        async def close(self) -> None:
            await maybe_deferred_to_future(ensureDeferred(self.shut()))

else:

    class Handler(_Handler):  # type: ignore[no-redef]
        """The download handler for http and https."""

        def download_request(self, request: Request, spider: Spider) -> Deferred[Response]:
            return ensureDeferred(self.download(request, spider))

        def close(self) -> Deferred[None]:
            return ensureDeferred(self.shut())


PATH = "collyrobots_scrapy.Handler"

# What Addon sets. A version of Scrapy without add-ons needs these settings in settings.py.
SETTINGS: dict[str, Any] = {
    "DOWNLOAD_HANDLERS": {"http": PATH, "https": PATH},
    "SCHEDULER_PRIORITY_QUEUE": "collyrobots_scrapy.Queue",
    "ROBOTSTXT_OBEY": False,
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "CONCURRENT_REQUESTS": 256,
}

# The headers that the service reads. They come first in an answer.
FIRST = ("Retry-After", "Cache-Control", "Content-Type", "X-Robots-Tag", "Robots-Tag", "Content-Usage")


def answer_of(response: Response) -> dict[str, Any]:
    """Returns the answer to a turn: the status and the headers, without cookies."""
    headers: dict[str, list[str]] = {}
    rest = MAX_HEADERS
    names = list(response.headers.keys())
    names.sort(key=lambda name: name.decode("latin-1").title() not in FIRST)
    for name in names:
        values = [value.decode("latin-1") for value in response.headers.getlist(name)]
        size = len(name) + sum(len(value) for value in values)
        if name.lower() != b"set-cookie" and size <= rest:
            headers[name.decode("latin-1")] = values
            rest -= size
    return {"status": response.status, "headers": headers}


# The names of the exceptions of Twisted and Scrapy for requests that were not sent.
NOT_SENT = {"ConnectError", "ConnectionRefusedError", "DNSLookupError", "NoRouteError", "UnknownHostError",
            "CannotResolveHostError", "DownloadConnectionRefusedError", "NotSupported", "UnsupportedURLSchemeError"}


def failure_of(error: Exception) -> dict[str, Any]:
    """Returns the answer to the turn of a request that has failed."""
    if isinstance(getattr(error, "response", None), Response):  # StopDownload
        return answer_of(error.response)  # type: ignore[attr-defined]
    names = {type(cause).__name__ for cause in causes(error)}
    if names & NOT_SENT:
        return {"error": "not_sent"}
    if "ConnectionLost" in names:
        return {"error": "reset"}
    return {"error": describe(error)}


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yields an exception, and those that have led to it."""
    while error is not None:
        yield error
        for failure in getattr(error, "reasons", None) or ():
            yield failure.value
        error = error.__cause__


def describe(error: BaseException) -> str:
    """Returns an exception as a short text."""
    return ", ".join(f"{type(cause).__name__}: {cause}".strip(": ") for cause in causes(error))[:200]
