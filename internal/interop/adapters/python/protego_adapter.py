"""Answers the cases of the conformance suite with Protego, the parser of Scrapy."""
import base64, json, sys
import protego


def answer(q):
    body = base64.b64decode(q["robots_base64"]) if "robots_base64" in q else q["robots"].encode()
    try:
        rules = protego.Protego.parse(body.decode("utf-8", errors="ignore"))  # as in Scrapy
        rate = rules.request_rate(q["agent"])
        return {
            "allowed": rules.can_fetch(q["url"], q["agent"]),
            "delay": rules.crawl_delay(q["agent"]) or 0,
            "sitemaps": list(rules.sitemaps),
            "interval": rate.seconds / rate.requests if rate and rate.requests else 0,
        }
    except ValueError as fault:
        return {"error": str(fault)}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
