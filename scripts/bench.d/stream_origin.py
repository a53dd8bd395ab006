"""An origin of pseudo-random objects: /MEBIBYTES/SEED. The same path gives the same bytes.

Arguments: a port, and an address if not loopback.
"""

import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MEBIBYTE = 1 << 20


class Stream(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        mebibytes, seed = map(int, self.path.strip("/").split("/"))
        source = random.Random(seed)
        self.send_response(200)
        self.send_header("Content-Length", str(mebibytes * MEBIBYTE))
        self.send_header("Cache-Control", "public, max-age=86400")
        self.end_headers()
        for _ in range(mebibytes):
            self.wfile.write(source.randbytes(MEBIBYTE))

    def log_message(self, *_):
        pass


address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
ThreadingHTTPServer((address, int(sys.argv[1])), Stream).serve_forever()
