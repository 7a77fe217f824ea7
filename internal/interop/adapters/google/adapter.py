"""Answers the cases of the conformance suite with the program of google/robotstxt.

Usage: adapter.py PROGRAM, where PROGRAM is the file that is built from robots_main.cc. It is called once for
each case with a file, a product token and a URL, and prints whether the URL is ALLOWED or DISALLOWED."""
import base64, json, subprocess, sys, tempfile

for line in sys.stdin:
    q = json.loads(line)
    body = base64.b64decode(q["robots_base64"]) if "robots_base64" in q else q["robots"].encode()
    with tempfile.NamedTemporaryFile() as file:
        file.write(body)
        file.flush()
        out = subprocess.run([sys.argv[1], file.name, q["agent"], q["url"]], capture_output=True, text=True).stdout
    known = "ALLOWED" in out
    print(json.dumps({"allowed": "DISALLOWED" not in out} if known else {"error": out}), flush=True)
