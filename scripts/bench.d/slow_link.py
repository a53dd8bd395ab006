"""A slow link between two network namespaces: NAMESPACE ADDRESS NAMESPACE ADDRESS RATE_KBPS ROUND_TRIP_MS QUEUE [LOSS].

Makes a TUN device `slow0` in each and carries IP packets between them until it is ended. Each direction sends one packet
after another at the rate, counting bytes of IP; QUEUE packets may wait and later ones are dropped; then comes half the
round trip. LOSS (0 to 1) is drawn for each packet. Packets leave by the times that the rate gives, not by when this
program woke, so a late wake-up does not slow the link. Enough for about 10 Mbit/s.
"""

import collections
import fcntl
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 1500


def main():
    rate, round_trip, queue = float(sys.argv[5]) * 1000 / 8, float(sys.argv[6]) / 1000, int(sys.argv[7])
    loss = float(sys.argv[8]) if len(sys.argv) > 8 else 0.0
    near, near_address, far, far_address = sys.argv[1:5]
    ends = [open_end(near, near_address, far_address, "slow1"), open_end(far, far_address, near_address, "slow2")]
    chance = random.Random(1)
    ways = {end: Way(out, rate, round_trip / 2, queue, loss, chance) for end, out in (ends, reversed(ends))}
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        due = min((way.flying[0][0] for way in ways.values() if way.flying), default=now + 1)
        for end in select.select(ends, [], [], max(0, due - now))[0]:
            ways[end].take_all(end)
        for way in ways.values():
            way.deliver(time.monotonic())


def open_end(namespace, address, peer, name):
    """Makes the device here and moves it; its file stays ours."""
    end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    for command in (f"link set {name} netns {namespace} name slow0", f"-n {namespace} addr add {address} peer {peer} dev slow0",
                    f"-n {namespace} link set slow0 mtu {MTU} txqueuelen 1000 up"):
        subprocess.run(["ip", *command.split()], check=True)
    return end


class Way:
    """One direction."""

    def __init__(self, out, rate, delay, queue, loss, chance):
        self.out, self.rate, self.delay, self.queue, self.loss, self.chance = out, rate, delay, queue, loss, chance
        self.free_at = 0.0
        # When the packets that wait will have been sent, and (arrival, packet) of all under way.
        self.waiting = collections.deque()
        self.flying = collections.deque()

    def take_all(self, end):
        while True:
            try:
                packet = os.read(end, 65536)
            except BlockingIOError:
                return
            self.take(packet, time.monotonic())

    def take(self, packet, now):
        while self.waiting and self.waiting[0] <= now:
            self.waiting.popleft()
        # One of them is being sent.
        if len(self.waiting) > self.queue:
            return
        self.free_at = max(now, self.free_at) + len(packet) / self.rate
        self.waiting.append(self.free_at)
        if self.chance.random() >= self.loss:
            self.flying.append((self.free_at + self.delay, packet))

    def deliver(self, now):
        while self.flying and self.flying[0][0] <= now:
            try:
                os.write(self.out, self.flying.popleft()[1])
            except OSError:
                pass  # The other end went down.


main()
