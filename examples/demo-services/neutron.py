"""Registers a network service with Keystone, and answers that nothing exists."""
import http.server
import json
import sys

from catalog import register


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        parent, collection = self.path.split("?")[0].rstrip("/").rsplit("/", 1)
        # Nova counts the ports of a project before it boots a server.
        answer = {"quota": {"port": -1}} if parent.endswith("/quotas") else {collection.replace("-", "_"): []}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


register("neutron", "network", sys.argv[1])
http.server.ThreadingHTTPServer(("", 9696), Handler).serve_forever()
