"""Runs the fetch cases of the conformance suite with a crawler that follows the links of a page.

Usage: links.py COMMAND... The command is run once for each case. In its arguments, {page} is the URL of a page
on loopback with links to the URLs of the case, {agent} is the name of the crawler, and {folder} is an empty
folder."""
import http.server, json, subprocess, sys, tempfile, threading


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/"
        body = "".join(f'<a href="{url}">page</a>\n' for url in self.server.links).encode() if found else b""
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    q = json.loads(line)
    server.links = q["fetch"]
    with tempfile.TemporaryDirectory() as folder:
        values = {"page": f"http://127.0.0.1:{server.server_port}/", "agent": q["agent"], "folder": folder}
        command = [arg.format(**values) for arg in sys.argv[1:]]
        try:  # the log of the server says what was requested
            subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr, timeout=60)
            print("{}", flush=True)
        except (OSError, subprocess.TimeoutExpired) as fault:
            print(json.dumps({"error": str(fault)}), flush=True)
