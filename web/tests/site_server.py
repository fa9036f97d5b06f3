"""Servers on this machine for the tests of the app: one for its files, and one for files
elsewhere."""

import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and notes what is asked for."""

    def __init__(self, *arguments, allows_others=False, hides_index=False, asked=None, **options):
        self.allows_others = allows_others
        self.hides_index = hides_index
        self.asked = asked
        super().__init__(*arguments, **options)

    def do_GET(self):
        self.asked.append(self.path)
        if self.hides_index and self.path.endswith("/index.html"):
            self.send_response(308)
            self.send_header("Location", self.path.removesuffix("index.html"))
            self.end_headers()
        else:
            super().do_GET()

    def end_headers(self):
        if self.allows_others:
            self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def guess_type(self, path):
        """The type of a file, the same on every machine."""
        known = {".js": "text/javascript", ".wasm": "application/wasm", ".webmanifest": "application/manifest+json"}
        return known.get(Path(path).suffix) or super().guess_type(path)

    def log_message(self, *_):
        """Says nothing."""


@contextmanager
def served(folder, *, allows_others=False, hides_index=False):
    """Serves a folder on a free port; gives its address, and the list of what is asked for.

    A server that hides `index.html` redirects it to its folder, as many hosts of static files do.
    """
    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder), allows_others=allows_others, hides_index=hides_index, asked=asked))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
