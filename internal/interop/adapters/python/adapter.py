"""Answers the cases of the conformance suite with urllib.robotparser of Python's standard library."""
import base64, json, sys, urllib.robotparser


def answer(q):
    body = base64.b64decode(q["robots_base64"]) if "robots_base64" in q else q["robots"].encode()
    parser = urllib.robotparser.RobotFileParser()
    try:
        parser.parse(body.decode("utf-8").splitlines())  # as in RobotFileParser.read
        allowed = parser.can_fetch(q["agent"], q["url"])
    except ValueError as fault:
        return {"error": str(fault)}
    rate = parser.request_rate(q["agent"])  # the same at each time
    interval = rate.seconds / rate.requests if rate and rate.requests else 0
    return {"allowed": allowed, "delay": parser.crawl_delay(q["agent"]) or 0, "sitemaps": parser.site_maps() or [], "interval": interval}


if __name__ == "__main__":  # npm/pyodide.mjs calls answer itself
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
