"""A server of HTTP/1.1, by TLS or not, that keeps connections open and logs each response as a line of JSON."""

import gzip
import json
import socket
import threading

from content import LAST_MODIFIED

HEAD_MAX = 64 << 10
REASONS = {200: "OK", 206: "Partial Content", 304: "Not Modified", 307: "Temporary Redirect", 401: "Unauthorized"}
REASONS |= {404: "Not Found", 405: "Method Not Allowed"}


class Log:
    """One line for each response: host, path, status, bytes of head and body that were sent, kind of the entry."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.lock = threading.Lock()

    def write(self, **line):
        with self.lock:
            self.file.write(json.dumps(line) + "\n")


class Server:
    """`bare`: hosts whose responses have neither validators nor lifetimes. `delay`: seconds before each response."""

    def __init__(self, tree, faults, log, bare=(), delay=0.0):
        self.tree, self.faults, self.log = tree, faults, log
        self.bare, self.delay = set(bare), delay

    def listen(self, address, context=None):
        """Serves an address, by threads of their own, with TLS if there is a context."""
        host, port = address.rsplit(":", 1)
        listener = socket.create_server((host, int(port)), backlog=128)

        def accept():
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=self.converse, args=(connection, context), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return listener.getsockname()[1]

    def converse(self, connection, context):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(120)
        try:
            if context:
                connection = context.wrap_socket(connection, server_side=True)
            with connection.makefile("rb") as reader:
                while Response(self, connection, context is not None).answer(reader):
                    pass
        # The other end hung up, or did not trust the certificate.
        except (OSError, ValueError):
            pass
        finally:
            connection.close()


class Response:
    """One response on a connection."""

    def __init__(self, server, connection, tls):
        self.server, self.connection, self.tls = server, connection, tls
        self.sent = 0

    def answer(self, reader):
        """Answers the next request; false if the connection ends."""
        line = reader.readline(HEAD_MAX).decode("latin-1").split()
        if len(line) != 3:
            return False
        self.method, target, _ = line
        self.fields = {}
        while (field := reader.readline(HEAD_MAX).decode("latin-1").strip()) != "":
            name, _, value = field.partition(":")
            self.fields[name.lower()] = value.strip()
        self.host = self.fields.get("host", "").split(":")[0]
        self.path = target.partition("?")[0]
        if self.server.delay:
            threading.Event().wait(self.server.delay)
        fault = self.server.faults.get((self.host, self.path))
        try:
            return self.fail(fault) if fault else self.serve()
        finally:
            self.write_log(target)

    def write_log(self, target):
        entry = self.server.tree.entries.get((self.host, self.path))
        line = {"host": self.host, "path": target, "method": self.method, "status": self.status, "sent": self.sent}
        self.server.log.write(**line, kind=entry.kind if entry else "other", tls=self.tls)

    def fail(self, fault):
        self.status = 0
        for piece in fault():
            self.connection.sendall(piece)
            self.sent += len(piece)
        return False

    def serve(self):
        entry = self.server.tree.entries.get((self.host, self.path))
        if self.method not in ("GET", "HEAD"):
            return self.send(405, {}, b"") and False
        if entry is None:
            return self.send(404, {"Content-Type": "text/plain"}, b"there is no such thing\n")
        if entry.token and self.fields.get("authorization") != f"Bearer {entry.token}":
            return self.send(401, {"WWW-Authenticate": entry.challenge}, b'{"errors":[{"code":"UNAUTHORIZED"}]}')
        content_type, body, tag, headers = self.choose(entry)
        if self.host in self.server.bare:
            headers = {"Content-Type": content_type}
        elif tag in [it.strip().removeprefix("W/") for it in self.fields.get("if-none-match", "").split(",")]:
            return self.send(304, headers | {"ETag": tag}, b"")
        elif entry.status == 200:
            headers = headers | {"Content-Type": content_type, "ETag": tag, "Last-Modified": LAST_MODIFIED}
            if entry.kind == "file":
                return self.part(headers | {"Accept-Ranges": "bytes"}, tag, body)
        return self.send(entry.status, headers, body)

    def choose(self, entry):
        """Content type, body, tag and header fields of the form that the client wants."""
        content_type, body, tag, headers = entry.content_type, entry.body, entry.tag(), dict(entry.headers)
        if entry.variant and entry.variant[0] in self.fields.get("accept", ""):
            content_type, body = entry.variant
            tag = tag[:-1] + '-json"'
        if entry.packs and "gzip" in self.fields.get("accept-encoding", ""):
            headers["Content-Encoding"] = "gzip"
            body, tag = gzip.compress(body, mtime=0), tag[:-1] + '-gzip"'
        return content_type, body, tag, headers

    def part(self, headers, tag, body):
        """The whole body, or the range that the client wants."""
        wanted, condition = self.fields.get("range", ""), self.fields.get("if-range", tag)
        first, dash, last = wanted.removeprefix("bytes=").partition("-")
        if not wanted or not dash or not first or condition not in (tag, LAST_MODIFIED):
            return self.send(200, headers, body)
        first, last = int(first), min(int(last or len(body) - 1), len(body) - 1)
        if first > last:
            return self.send(200, headers, body)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.send(206, headers, body[first : last + 1])

    def send(self, status, headers, body):
        self.status = status
        lines = [f"HTTP/1.1 {status} {REASONS[status]}", *(f"{name}: {value}" for name, value in headers.items())]
        if status != 304:
            lines.append(f"Content-Length: {len(body)}")
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        whole = head if self.method == "HEAD" or status == 304 else head + body
        # In pieces, so that the log says how much of a body that is broken off was sent.
        for at in range(0, len(whole), 256 << 10):
            piece = whole[at : at + (256 << 10)]
            self.connection.sendall(piece)
            self.sent += len(piece)
        return self.fields.get("connection", "").lower() != "close"
