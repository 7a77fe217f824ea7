"""Fetches pages when collyrobots serve allows it: python3 polite.py URL..."""
import json, os, sys, time
from urllib.request import HTTPErrorProcessor, ProxyHandler, Request, build_opener

SERVICE = os.environ.get("COLLYROBOTS", "http://127.0.0.1:8094")
AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

class AnyStatus(HTTPErrorProcessor):  # errors are responses, and a redirect needs a turn of its own
    http_response = https_response = lambda self, request, response: response

service, web = build_opener(ProxyHandler({}), AnyStatus), build_opener(AnyStatus)

def ask(path, body):
    """Sends body to the service, and returns the status and the object of the response."""
    while True:
        try:
            with service.open(SERVICE + path, json.dumps(body).encode()) as r:
                if r.status not in (429, 503):
                    return r.status, json.loads(r.read() or "{}")
                time.sleep(int(r.headers["Retry-After"]))
        except OSError as e:
            print("waiting for the service:", e, file=sys.stderr)
            time.sleep(1)

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
        ask("/v1/turns/" + turn["turn"], answer or {"error": "the crawler has failed"})

for url in sys.argv[1:]:
    try:
        print(fetch(url)[0], url)
    except OSError as e:
        print(url, e)
