"""Runs the fetch cases of the conformance suite with urllib.robotparser and urllib.request of Python."""
import http.client, json, sys, urllib.parse, urllib.request, urllib.robotparser


def fetch(url, agent, files):
    robots = urllib.parse.urljoin(url, "/robots.txt")
    if robots not in files:
        files[robots] = urllib.robotparser.RobotFileParser(robots)
        files[robots].read()
    if files[robots].can_fetch(agent, url):
        urllib.request.urlopen(urllib.request.Request(url, headers={"User-Agent": agent}), timeout=30).read()


for line in sys.stdin:
    q = json.loads(line)
    files = {}
    for url in q["fetch"]:
        try:
            fetch(url, q["agent"], files)
        except (OSError, ValueError, http.client.HTTPException) as fault:  # the log of the server says what was requested
            print(q["id"], fault, file=sys.stderr)
    print("{}", flush=True)
