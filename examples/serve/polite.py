"""Fetches pages when collyrobots serve allows it: python3 polite.py URL..."""
import json, os, sys, time
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

SERVICE = os.environ.get("COLLYROBOTS", "http://127.0.0.1:8094")
AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

class AnyStatus(HTTPErrorProcessor):  # errors are responses, and a redirect needs a turn of its own
    http_response = https_response = lambda self, request, response: response

service, web = build_opener(ProxyHandler({}), AnyStatus), build_opener(AnyStatus)

def ask(path, body):
    """Sends body to the service up to six times, and returns the status and the object of the response."""
    for attempt in range(6):
        try:
            with service.open(SERVICE + path, json.dumps(body).encode()) as r:
                status, reply, pause = r.status, json.loads(r.read() or "{}"), int(r.headers["Retry-After"] or 0)
        except OSError as e:
            status, reply, pause = 503, {"error": f"no response of the service: {e}"}, 2**attempt
        if status not in (429, 503) or attempt == 5:
            break
        print(f"{body.get('url', path)}: {reply['error']}; next attempt in {pause} s", file=sys.stderr)
        time.sleep(pause)
    return status, reply

def fetch(url):
    """Returns the status, the headers and the body of a page, when it is its turn."""
    status, turn = ask("/v1/turns", {"url": url, "agent": AGENT, "wait": 240})
    if status != 201:
        raise PermissionError(turn["error"])
    answer = {}
    try:
        with web.open(Request(url, headers={"User-Agent": AGENT}), timeout=30) as r:
            answer = {"status": r.status, "headers": dict(r.headers)}
            return r.status, r.headers, r.read()
    except OSError as e:
        answer["error"] = str(e)
        raise
    finally:
        status, reply = ask("/v1/turns/" + turn["turn"], answer or {"error": "the crawler has failed"})
        if status not in (200, 204):
            print(f"{url}: the answer was not taken: {reply['error']}", file=sys.stderr)

for url in sys.argv[1:]:
    try:
        print(fetch(url)[0], url)
    except OSError as e:
        print(url, e)
