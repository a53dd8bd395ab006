"""Measures the time to the first byte of responses: OBJECT COUNT ORIGIN_PORT NAME=KIND:PORT...; prints a table.

Each contender is asked in turn over one kept-alive connection, so that whatever else the machine
does falls on all alike. KIND `forward` puts the whole URL into the request line.
"""

import socket
import sys
import time

WARM_UP = 50


class Contender:
    def __init__(self, text, origin_port):
        self.name, rest = text.split("=")
        kind, port = rest.split(":")
        self.origin = f"127.0.0.1:{origin_port}"
        self.prefix = f"http://{self.origin}" if kind == "forward" else ""
        self.address = ("127.0.0.1", int(port))
        self.socket = None
        self.times = []

    def ask(self, path):
        """Seconds from the request's last byte to the response's first byte."""
        if self.socket is None:
            self.socket = socket.create_connection(self.address)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = f"GET {self.prefix}/{path} HTTP/1.1\r\nHost: {self.origin}\r\n\r\n".encode()
        began = time.perf_counter()
        self.socket.sendall(request)
        got = self.socket.recv(1 << 16)
        taken = time.perf_counter() - began
        self.drain(got)
        return taken

    def drain(self, got):
        while b"\r\n\r\n" not in got:
            got += self.receive()
        head, body = got.split(b"\r\n\r\n", 1)
        fields = head.lower().split(b"\r\n")
        if not fields[0].startswith(b"http/1.1 200"):
            sys.exit(f"{self.name} answered {fields[0].decode()}")
        length = [f for f in fields if f.startswith(b"content-length:")]
        if length:
            missing = int(length[0].split(b":")[1]) - len(body)
            while missing > 0:
                missing -= len(self.receive())
        else:
            while not body.endswith(b"0\r\n\r\n"):
                body = body[-8:] + self.receive()
        if b"connection: close" in fields:
            self.socket.close()
            self.socket = None

    def receive(self):
        got = self.socket.recv(1 << 20)
        return got or sys.exit(f"{self.name} closed the connection within an answer")


def percentile(times, percent):
    return sorted(times)[min(len(times) - 1, len(times) * percent // 100)] * 1e6


def main():
    path, count, origin_port = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    contenders = [Contender(text, origin_port) for text in sys.argv[4:]]
    for n in range(-WARM_UP, count):
        for it in contenders:
            taken = it.ask(f"{path}?{it.name}={n}")
            if n >= 0:
                it.times.append(taken)
    direct = contenders[0].times
    print(f"| {path}: first byte | p50 us | p99 us | added at p50 | added at p99 |")
    print("|---|--:|--:|--:|--:|")
    for it in contenders:
        p50, p99 = percentile(it.times, 50), percentile(it.times, 99)
        added = (p50 - percentile(direct, 50), p99 - percentile(direct, 99))
        print(f"| {it.name} | {p50:.0f} | {p99:.0f} | {added[0]:+.0f} | {added[1]:+.0f} |")


main()
