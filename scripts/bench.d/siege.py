"""Runs one attack on a router, and measures what an honest client sees meanwhile.

    siege.py origin ADDRESS PORT
    siege.py ATTACK PID PROXY ORIGIN SECONDS [COMMAND...]

The first is the origin. The second runs an attack for some seconds from ten addresses (CROWD), or the command
in its place, against the daemon PID behind PROXY, asks from an eleventh address (HONEST) for a warm object
every 100 ms meanwhile, and prints a row of a table. PROXY and ORIGIN are ADDRESS:PORT. It starts one process
and ends that one.
"""

import asyncio
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import time

CROWD = [f"10.78.0.{host}" for host in range(101, 111)]
HONEST = "10.78.0.111"
WARM = 64 * 1024
LARGE = 64 * 1024 * 1024
EVERY = 0.1
PATIENCE = 5.0


def descriptors(wanted=20000):
    """Raises the limit of open files as far as permitted."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# The origin


async def answer(reader, writer):
    """/warm and /large may be stored, whatever follows them in the path; /never gets no answer, nor does a request with a body."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            if head.startswith(b"POST") or path.startswith(b"/never"):
                await asyncio.sleep(3600)
            length = LARGE if path.startswith(b"/large") else WARM
            writer.write(
                b"HTTP/1.1 200 OK\r\nCache-Control: public, max-age=86400\r\n"
                b"Content-Length: %d\r\n\r\n" % length
            )
            # Each block is different, so that no unit is stored twice.
            for block in range(length // WARM):
                begin = b"%s %d " % (path, block)
                writer.write((begin + os.urandom(WARM))[:WARM])
                await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, asyncio.LimitOverrunError):
        pass
    finally:
        writer.close()


# Attacks: each gets the proxy's address, and keeps its sockets open until it is ended.


class Crowd:
    """Connections from ten addresses in turn."""

    def __init__(self, proxy):
        self.proxy = proxy
        self.held = []

    async def connect(self, **options):
        """Opens a connection and keeps it; None if it is refused."""
        source = (CROWD[len(self.held) % len(CROWD)], 0)
        try:
            sock = socket.socket()
            sock.setblocking(False)
            for name, value in options.items():
                sock.setsockopt(socket.SOL_SOCKET, getattr(socket, name), value)
            sock.bind(source)
            self.held.append(sock)
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_connect(sock, self.proxy), PATIENCE)
            return sock
        except (OSError, asyncio.TimeoutError):
            return None

    async def send(self, sock, data):
        """Sends all of it, unless the other side refuses."""
        try:
            loop = asyncio.get_running_loop()
            await asyncio.wait_for(loop.sock_sendall(sock, data), 3600)
        except (OSError, asyncio.TimeoutError):
            pass

    async def each(self, count, act, **options):
        """Does something with each of this many connections, a few hundred at a time."""
        gate = asyncio.Semaphore(200)

        async def one(number):
            async with gate:
                sock = await self.connect(**options)
            if sock:
                await act(sock, number)

        await asyncio.gather(*(one(number) for number in range(count)))


def get(origin, path):
    return f"GET http://{origin}{path} HTTP/1.1\r\nHost: {origin}\r\n\r\n".encode()


async def nothing(sock, number):
    pass


async def idle(crowd, origin):
    """2,048 connections that send nothing, and then 2,048 more."""
    for _ in range(2):
        await crowd.each(2048, nothing)


async def half_heads(crowd, origin):
    """2,000 heads of 31 KB that never end."""
    line = b"X-Filler: " + b"x" * 1012 + b"\r\n"
    head = get(origin, "/warm")[:-2] + line * 30
    await crowd.each(2000, lambda sock, number: crowd.send(sock, head))


async def no_readers(crowd, origin):
    """2,000 clients that request a large object and read nothing."""
    ask = get(origin, "/large")
    await crowd.each(2000, lambda sock, number: crowd.send(sock, ask), SO_RCVBUF=4096)


async def slow_bodies(crowd, origin):
    """2,000 requests with a body that comes a byte at a time, after 16 KB of it."""

    async def send(sock, number):
        head = f"POST http://{origin}/{number} HTTP/1.1\r\nHost: {origin}\r\nContent-Length: 1000000\r\n\r\n"
        await crowd.send(sock, head.encode() + b"x" * 16384)
        for _ in range(20):
            await crowd.send(sock, b"x")
            await asyncio.sleep(1)

    await crowd.each(2000, send)


async def leavers(crowd, origin):
    """500 clients that request a URL that gets no answer and leave, over and over."""

    async def leave(sock, number):
        await crowd.send(sock, get(origin, f"/never{time.monotonic_ns()}"))
        await asyncio.sleep(0.2)
        sock.close()

    while True:
        await crowd.each(500, leave)
        crowd.held.clear()


async def names(crowd, origin):
    """2,000 requests for 2,000 hosts, whose names do not resolve."""
    ask = lambda number: get(f"host{number}.invalid", "/")
    await crowd.each(2000, lambda sock, number: crowd.send(sock, ask(number)))


ATTACKS = {
    "nothing": lambda crowd, origin: asyncio.sleep(0),
    "idle": idle,
    "half-heads": half_heads,
    "no-readers": no_readers,
    "slow-bodies": slow_bodies,
    "leavers": leavers,
    "names": names,
}


async def attack(name, proxy, origin):
    """Runs one attack, and keeps its connections until it is ended."""
    crowd = Crowd(proxy)
    await ATTACKS[name](crowd, origin)
    await asyncio.sleep(3600)


# Measurements


class Peak:
    """The largest memory use of the daemon and of TCP, in bytes: TCP's of the whole machine, from sockstat in each
    namespace, and of the router's own connections; the daemon and those together."""

    def __init__(self, pid):
        self.pid = pid
        self.resident = self.tcp = self.own = self.both = 0

    def look(self):
        """Measures once; False if the daemon has ended."""
        try:
            resident = field(f"/proc/{self.pid}/status", "VmRSS:", 1) * 1024
            tcp = field(f"/proc/{self.pid}/net/sockstat", "TCP:", 10) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, StopIteration):
            return False
        self.resident = max(self.resident, resident)
        self.tcp = max(self.tcp, tcp)
        return True

    def look_closely(self):
        """Memory of the router's connections alone: received data, sent data, and memory reserved for both."""
        command = ["nsenter", "-t", str(self.pid), "-n", "ss", "-tmnHO"]
        listed = subprocess.run(command, capture_output=True, text=True).stdout
        own = sum(
            sum(signed(int(found)) for found in re.findall(r"[rwf](\d+),", socket))
            for socket in re.findall(r"skmem:\(([^)]*)\)", listed)
        )
        self.own = max(self.own, own)
        self.both = max(self.both, own + field(f"/proc/{self.pid}/status", "VmRSS:", 1) * 1024)


def signed(number):
    """Reserved memory can be negative for a moment; ss prints it as an unsigned number."""
    return number - 2**32 if number >= 2**31 else number


def field(path, line, number):
    """The number in a file's line that begins with this text."""
    with open(path, encoding="ascii") as lines:
        return int(next(it for it in lines if it.startswith(line)).split()[number])


async def honest(proxy, origin):
    """Seconds to the first byte of a complete and right response; None if it was not."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection(*proxy, local_addr=(HONEST, 0))
            try:
                writer.write(get(origin, "/warm"))
                status = await reader.read(1)
                first = time.monotonic() - began
                head = status + await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(WARM)
                return first if head.startswith(b"HTTP/1.1 200") and len(body) == WARM else None
            finally:
                writer.close()
    except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
        return None


async def watch(peak, proxy, origin, seconds):
    """What the honest client saw, and whether the daemon survived."""
    asked, end = [], time.monotonic() + seconds
    alive = True
    while alive and time.monotonic() < end:
        asked.append(asyncio.create_task(honest(proxy, origin)))
        for _ in range(5):
            alive = alive and peak.look()
            await asyncio.sleep(EVERY / 5)
        if alive and len(asked) % 5 == 0:
            await asyncio.to_thread(peak.look_closely)
    return await asyncio.gather(*asked), alive


def row(name, peak, seen, alive):
    good = [it for it in seen if it is not None]
    mib = [f"{it / 2**20:.1f}" for it in (peak.resident, peak.tcp, peak.own, peak.both)]
    times = [statistics.median(good), max(good)] if good else []
    times = [f"{it * 1000:.0f}" for it in times] or ["–", "–"]
    share = f"{100 * len(good) / max(len(seen), 1):.0f}"
    end = "" if alive else " (the daemon is gone)"
    return " | ".join([f"| {name}{end}", *mib, share, *times]) + " |"


def main():
    descriptors()
    if sys.argv[1] == "origin":
        return asyncio.run(serve(sys.argv[2], int(sys.argv[3])))
    name, pid, address, origin, seconds = sys.argv[1:6]
    host, port = address.rsplit(":", 1)
    proxy = (host, int(port))
    if pid == "attack":
        return asyncio.run(attack(name, proxy, origin))
    command = [sys.executable, __file__, name, "attack", address, origin, seconds]
    command = sys.argv[6:] or command
    peak = Peak(int(pid))
    if asyncio.run(honest(proxy, origin)) is None:
        sys.exit(f"{proxy} does not give http://{origin}/warm even before the attack: see the daemon's log")
    attacker = subprocess.Popen(command)
    try:
        seen, alive = asyncio.run(watch(peak, proxy, origin, float(seconds)))
    finally:
        attacker.send_signal(signal.SIGKILL)
        attacker.wait()
    print(row(name, peak, seen, alive), flush=True)


async def serve(address, port):
    server = await asyncio.start_server(answer, address, port, backlog=4096, limit=1 << 17)
    await server.serve_forever()


if __name__ == "__main__":
    main()
