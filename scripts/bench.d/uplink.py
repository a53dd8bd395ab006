"""Measures the uplink pair for scripts/bench.d/uplink.sh: COMMAND ARGUMENTS...

Every command but `table` appends records, a JSON object a line, to the file that $results names.
"""

import hashlib
import http.client
import json
import os
import pathlib
import platform
import random
import socket
import subprocess
import sys
import threading
import time
from statistics import median
from urllib.parse import quote, urlsplit

# Of each kind: goal, what a model of the design saved on pairs of the same kind, and `zstd -19 --patch-from` on those.
GOALS = {"tree": (99.6, 99.64, 99.75), "wheel": (97.5, 97.6, 96.5), "html": (99.4, 99.45, 99.7),
         "js-rebuilt": (99.7, 99.76, 99.85), "js-rewritten": (88, 86.2, 90.5), "pages": (99, None, None)}
# What WANProxy saved, measured on pairs of the same kind: other versions than those that `scripts/setup corpora` fetches.
WANPROXY = {"tree": 94.92, "wheel": 89.34, "html": 94.85, "js-rebuilt": 96.37, "js-rewritten": 80.91}
# As seconds a GB: processor time of new and of repeated bytes, each daemon.
WORK_GOALS = {"new": 20, "again": 4}
MEMORY_GOAL_MIB = 16
CONNECTED = ("up", "connected", "ready")
PING_PORT = 9


# What the daemons say and take


def counters():
    """What the gateway says about its far end."""
    done = subprocess.run([os.environ["HEARSAY_BIN"], "uplink", "--json", "--control", os.environ["control"]],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"hearsay uplink: {done.stderr.strip()}")
    return json.loads(done.stdout)


def settled():
    """The counters once no content has crossed for a moment, so that late acknowledgements are counted."""
    seen = counters()
    while True:
        time.sleep(0.3)
        now = counters()
        if crossed(now) - crossed(seen) < 200:
            return now
        seen = now


def crossed(count):
    return count["crossed_in_bytes"] + count["crossed_out_bytes"]


def processor_seconds(which):
    fields = pathlib.Path(f"/proc/{os.environ[which]}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(field):
    """VmRSS (now) or VmHWM (peak) of the gateway, in MiB."""
    for line in pathlib.Path(f"/proc/{os.environ['gateway_pid']}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    sys.exit(f"the gateway has ended, or has no {field}")


def add(**record):
    with open(os.environ["results"], "a") as file:
        file.write(json.dumps(record) + "\n")


# Fetching


class Client:
    """One kept-alive connection, to the gateway or straight to the origin."""

    def __init__(self, through="pair"):
        self.origin = os.environ["origin"]
        self.through = through
        host, port = (os.environ["gateway"] if through == "pair" else urlsplit(self.origin).netloc).rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=600)

    def get(self, path, stop=None):
        """Seconds, size and SHA-256 of an answer; None if it was stopped."""
        digest, size, began = hashlib.sha256(), 0, time.perf_counter()
        prefix = self.origin if self.through == "pair" else ""
        self.connection.request("GET", f"{prefix}/{quote(path, safe='/?=')}", headers={"Host": urlsplit(self.origin).netloc})
        answer = self.connection.getresponse()
        if answer.status != 200:
            sys.exit(f"{path}: the answer was {answer.status}")
        while part := answer.read1(1 << 20):
            size += len(part)
            digest.update(part)
            if stop and stop.is_set():
                self.connection.close()
                return None
        answer.read()  # Nothing is left, but only this frees the connection for the next request.
        return time.perf_counter() - began, size, digest.hexdigest()

    def get_exact(self, path, file):
        """Seconds and size of an answer that must have a file's bytes."""
        seconds, size, digest = self.get(path)
        with open(file, "rb") as expected:
            if hashlib.file_digest(expected, "sha256").hexdigest() != digest:
                sys.exit(f"WRONG BYTES: {path}: {size} bytes differ from the file's")
        return seconds, size


def files(version):
    """Every file of one version: itself, or the pages in its folder."""
    return sorted(version.iterdir()) if version.is_dir() else [version]


def fetch_version(client, name, version, mark=""):
    """Fetches a version file by file; its size."""
    folder = version.is_dir()
    return sum(client.get_exact(f"{name}/{version.name}{f'/{it.name}' if folder else ''}{mark}", it)[1] for it in files(version))


def kind_of(pair):
    return (pair / "about").read_text().split("\n")[0]


# Bytes


def command_saved(name, pair, scheme):
    """The old version, then the new one: the bytes of all channels in both directions while the new one came."""
    pair, client = pathlib.Path(pair), Client()
    fetch_version(client, name, pair / "old")
    before = settled()
    size = fetch_version(client, name, pair / "new")
    after = settled()
    if after["content_in_bytes"] - before["content_in_bytes"] < size:
        sys.exit(f"{name}: not everything came through the far end: {before} {after}")
    add(part="bytes", pair=name, scheme=scheme, kind=kind_of(pair), size=size, files=len(files(pair / "new")),
        crossed_in=after["crossed_in_bytes"] - before["crossed_in_bytes"],
        crossed_out=after["crossed_out_bytes"] - before["crossed_out_bytes"],
        **{group: grown(before.get(group, {}), after.get(group, {})) for group in ("classes", "counts")})


def grown(before, after):
    """How much each count of the second has grown."""
    return {it: count - before.get(it, 0) for it, count in after.items() if isinstance(count, int)}


def command_rivals(pair, name, results):
    """What other programs need for the new version. Slow, so it is kept beside the pair."""
    os.environ["results"] = results
    pair = pathlib.Path(pair).resolve()
    kept = pair / "rivals.json"
    if not kept.exists():
        sums = {"gzip": 0, "zstd": 0, "patch": 0}
        for new in files(pair / "new"):
            old = pair / "old" / new.name if (pair / "new").is_dir() else pair / "old"
            sums["gzip"] += output_size(["gzip", "-9", "-c", new])
            sums["zstd"] += output_size(["zstd", "-19", "-qq", "-c", new])
            # The window must reach over both files.
            against = ["--long=31", f"--patch-from={old}"] if old.exists() else []
            sums["patch"] += output_size(["zstd", "-19", "-qq", "-c", *against, new])
        kept.write_text(json.dumps(sums))
    add(part="rivals", pair=name, about=(pair / "about").read_text().split("\n")[1], **json.loads(kept.read_text()))


def output_size(command):
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        size = 0
        while part := process.stdout.read(1 << 20):
            size += len(part)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed")
    return size


# Processor time and memory


def command_work(content, file):
    """New bytes, then the same from another URL, which the gateway's cache cannot answer."""
    client = Client()
    record = {"part": "work", "content": content, "size": os.path.getsize(file)}
    for which in ("new", "again"):
        before = {it: processor_seconds(it) for it in ("gateway_pid", "far_pid")}
        client.get_exact(f"{content}?{which}", file)
        settled()
        for it, short in (("gateway_pid", "gateway"), ("far_pid", "far")):
            record[f"{which}_{short}"] = (processor_seconds(it) - before[it]) / record["size"] * 1e9
    add(**record)


def command_memory(which, www):
    """The gateway's memory before and after two versions of a large tree and of many pages."""
    www = pathlib.Path(www)
    before = memory("VmRSS")
    client = Client()
    pages = sorted(it.name for it in www.iterdir() if (it / "about").exists() and kind_of(it) == "pages")
    for name in ("large", *pages):
        for age in ("old", "new"):
            fetch_version(client, name, www / name / age)
    if which == "with":
        settled()
    else:
        time.sleep(1)
    add(part="memory", which=which, before=before, after=memory("VmRSS"), peak=memory("VmHWM"))


def command_connected():
    sys.exit(0 if counters()["state"] in CONNECTED else 1)


# Over the emulated link


def link_bytes():
    """Bytes of IP packets that the link has delivered, in both directions."""
    total = 0
    for namespace in ("gateway", "far"):
        command = ["ip", "-n", namespace, "-s", "-j", "link", "show", "slow0"]
        said = subprocess.run(command, capture_output=True, check=True)
        total += json.loads(said.stdout)[0]["stats64"]["rx"]["bytes"]
    return total


def command_transfers(through, rounds, www):
    """1 MB files over the link: never seen, a second version, and that again from another URL."""
    www = pathlib.Path(www)
    ages = [("first", "old", ""), ("second", "new", ""), ("again", "new", "?again")]
    if through == "direct":
        ages = ages[:1]
    for number in range(1, int(rounds) + 1):
        for which, age, mark in ages:
            # A connection of its own, as each direct transfer has.
            client, before = Client(through), link_bytes()
            seconds, size = client.get_exact(f"{number}/blocks/{age}{mark}", www / str(number) / "blocks" / age)
            client.connection.close()
            time.sleep(1)
            add(part="transfer", through=through, which=which, seconds=seconds, size=size, ip=link_bytes() - before)


def command_small(through, count):
    """Answers of 2 KB while a download fills the link."""
    stop = threading.Event()
    filler = threading.Thread(target=fill, args=(through, stop), daemon=True)
    filler.start()
    time.sleep(8)
    chance = random.Random(1)
    for number in range(int(count)):
        client = Client(through)
        seconds, _, _ = client.get(f"small?{number}")
        client.connection.close()
        add(part="small", through=through, seconds=seconds)
        time.sleep(chance.uniform(0.5, 1.5))
        if not filler.is_alive():
            sys.exit("the download that fills the link has ended")
    stop.set()
    filler.join(timeout=30)


def fill(through, stop):
    while not stop.is_set():
        Client(through).get(f"filler?{time.monotonic_ns()}", stop)


def command_rate(kbps, ms):
    """Checks the link itself: floods it for ten seconds with datagrams, and measures the idle round trip."""
    far = ["ip", "netns", "exec", "far", sys.executable, __file__, "sink"]
    with subprocess.Popen(far, stdout=subprocess.PIPE, text=True) as sink:
        sink.stdout.readline()
        flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        flood.connect(("10.80.0.2", PING_PORT))
        flood.settimeout(10)
        round_trips = []
        for _ in range(10):
            began = time.perf_counter()
            flood.send(b"ping")
            flood.recv(100)
            round_trips.append((time.perf_counter() - began) * 1000)
        # Half as much again as the link carries. 1500 bytes with the headers.
        pause = 1500 * 8 / (float(kbps) * 1000) / 1.5
        began = time.perf_counter()
        sent = 0
        while (now := time.perf_counter() - began) < 11:
            if now >= sent * pause:
                flood.send(bytes(1472))
                sent += 1
            else:
                time.sleep(sent * pause - now)
        # When all that waits has passed.
        time.sleep(4)
        flood.send(b"end")
        got = json.loads(sink.stdout.readline())
    rate = (got["bytes"] - 1500) * 8 / 1000 / got["seconds"]
    add(part="rate", kbps=rate, error=rate / float(kbps) - 1, round_trip_ms=median(round_trips))


def command_sink():
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("10.80.0.2", PING_PORT))
    print("ready", flush=True)
    size, first, last = 0, None, None
    while True:
        datagram, sender = sink.recvfrom(2000)
        if datagram == b"ping":
            sink.sendto(datagram, sender)
        elif datagram == b"end":
            break
        else:
            size, last = size + len(datagram) + 28, time.perf_counter()
            first = first or last
    print(json.dumps({"bytes": size, "seconds": last - first}), flush=True)


# Tables


def command_note(results, *pairs):
    """What the tables say about the conditions."""
    os.environ["results"] = results
    add(part="note", values=dict(it.split("=", 1) for it in pairs))


def command_table(over, results, json_file=None):
    records = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    notes = next(it["values"] for it in records if it["part"] == "note")
    machine = {"processor": processor(), "kernel": platform.release(), "load": os.getloadavg()[0]}
    date = time.strftime("%Y-%m-%d")
    print(f"\n{date}, {machine['processor']}, Linux {machine['kernel']}, load {machine['load']:.1f}. "
          f"Medians (lowest–highest) of {notes['rounds']} rounds.")
    tables = (bytes_table, work_table, memory_table) if over == "loopback" else (transfer_table, small_table)
    for table in tables:
        table(records, notes)
    if json_file:
        pathlib.Path(json_file).write_text(json.dumps(
            {"command": f"scripts/bench uplink{' link' * (over == 'link')}", "date": date, "machine": machine,
             "conditions": notes, "records": [it for it in records if it["part"] != "note"]}, indent=1) + "\n")


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def shown(values, digits):
    if not values:
        return "–"
    lowest, middle, highest = (f"{it:.{digits}f}" for it in (min(values), median(values), max(values)))
    return middle if lowest == highest else f"{middle} ({lowest}–{highest})"


def bytes_table(records, notes):
    ours = [it for it in records if it.get("scheme", "ours") == "ours"]
    runs = group(ours, "bytes", "pair")
    schemes = list(dict.fromkeys(it["scheme"] for it in records if it.get("scheme", "ours") != "ours"))
    published = group([it for it in records if it.get("scheme") in schemes], "bytes", "pair")
    rivals = {it["pair"]: it for it in records if it["part"] == "rivals"}
    if not runs:
        return
    print(f"\nSaved over {notes['over'] or 'loopback'}, % of a new version while the old one is known: all bytes that "
          "crossed, both ways, beside the size of the content. *Goal*, *model* and *patch there* are of the pairs for which "
          "the goals were set; *WANProxy* was measured on pairs of the same kind, of other versions than these. Goal: never to send "
          "more than the best of the others.\n")
    row("pair", "kind", "MB", "saved", "out, % of crossed", "gzip -9", "zstd -19", "zstd -19 --patch-from",
        "goal", "model", "patch there", "WANProxy", *schemes)
    row("---", "---", *["--:"] * (10 + len(schemes)))
    order = [*GOALS, "binary", "blocks", "noise"]
    for name, some in sorted(runs.items(), key=lambda it: (order.index(it[1][0]["kind"]), it[0])):
        size, kind = some[0]["size"], some[0]["kind"]
        if kind == "noise":
            continue
        generated = rivals[name]["about"].startswith("generated")
        goals = ("–",) * 3 if generated else tuple("–" if it is None else f"{it:g}" for it in GOALS.get(kind, (None,) * 3))
        row(name, kind, f"{size / 1e6:.1f}", shown([saved(total(it), size) for it in some], 2),
            shown([100 * it["crossed_out"] / total(it) for it in some], 1),
            *(f"{saved(rivals[name][it], size):.2f}" for it in ("gzip", "zstd", "patch")), *goals,
            f"{WANPROXY[kind]:.2f}" if kind in WANPROXY and not generated else "–",
            *(shown([saved(total(it), size) for it in published[name] if it["scheme"] == scheme], 2) for scheme in schemes))
    for it in (it for some in runs.values() for it in some[:1] if it["kind"] == "noise"):
        over = [100 * (total(run) / run["size"] - 1) for run in runs[it["pair"]]]
        print(f"\nNever seen and incompressible, {it['size'] / 1e6:.1f} MB: {shown(over, 3)} % above the content "
              "(goal: 0.5; the paper: 5.6).")
    print()
    for name in runs:
        print(f"- {name}: {rivals[name]['about']}")


def group(records, part, by):
    groups = {}
    for it in records:
        if it["part"] == part:
            groups.setdefault(it[by], []).append(it)
    return groups


def total(run):
    return run["crossed_in"] + run["crossed_out"]


def saved(size, whole):
    return 100 * (1 - size / whole)


def work_table(records, notes):
    runs = group(records, "work", "content")
    if not runs:
        return
    print("\nProcessor time, seconds for each GB of content, on loopback. Goals: "
          f"{WORK_GOALS['new']} new, {WORK_GOALS['again']} repeated.\n")
    row("content", "MB", "new: gateway", "far end", "repeated: gateway", "far end")
    row("---", *["--:"] * 5)
    for content, some in runs.items():
        row({"new-noise": "incompressible"}.get(content, "source tree"), f"{some[0]['size'] / 1e6:.0f}",
            *(shown([it[which] for it in some], 2) for which in ("new_gateway", "new_far", "again_gateway", "again_far")))


def memory_table(records, notes):
    runs = group(records, "memory", "which")
    if not runs:
        return
    print("\nThe gateway's resident memory in MiB, two versions of a large tree and of the pages having come through.\n")
    row("", "just started", "afterwards", "peak")
    row("---", *["--:"] * 3)
    figures = {which: [[it[when] for it in runs[which]] for when in ("before", "after", "peak")] for which in ("with", "without")}
    for which, some in figures.items():
        row(f"{which} a far end", *(shown(values, 1) for values in some))
    row(f"more (goal: at most {MEMORY_GOAL_MIB})",
        *(f"{median(it) - median(other):.1f}" for it, other in zip(figures["with"], figures["without"])))


def transfer_table(records, notes):
    rate = next(it for it in records if it["part"] == "rate")
    print(f"\nA link of {notes['kbps']} kbit/s each way, {notes['ms']} ms, a queue of {notes['queue']} packets, "
          f"loss {notes['loss']}, TCP {notes['congestion']}. Measured: {rate['kbps']:.1f} kbit/s "
          f"({100 * rate['error']:+.2f} %), {rate['round_trip_ms']:.1f} ms.")
    if abs(rate["error"]) > 0.01:
        print("INVALID: the link's rate is off by more than 1 %")
    print("\nFiles of 1 MB of noise, the second version equal in 90 % of its chunks of 64 bytes.\n")
    row("", "seconds", "Mbit/s", "round trips", "IP bytes, % above the content", "goal")
    row("---", *["--:"] * 4, "---")
    transfers = [it for it in records if it["part"] == "transfer"]
    runs = {(through, which): [it for it in transfers if (it["through"], it["which"]) == (through, which)]
            for through, which in (("direct", "first"), ("pair", "first"), ("pair", "second"), ("pair", "again"))}
    labels = ("direct", "first time", "second version", "the same again")
    direct = median(it["ip"] for it in runs["direct", "first"])
    goals = ("", "no slower than direct; IP bytes at most 2 % above direct: "
             f"{100 * (median(it['ip'] for it in runs['pair', 'first']) / direct - 1):+.2f} %", "3.8 Mbit/s", "2 round trips")
    for some, label, goal in zip(runs.values(), labels, goals):
        trip = float(notes["ms"]) / 1000
        row(label, shown([it["seconds"] for it in some], 2), shown([it["size"] * 8 / 1e6 / it["seconds"] for it in some], 2),
            shown([it["seconds"] / trip for it in some], 1), shown([100 * (it["ip"] / it["size"] - 1) for it in some], 2), goal)


def small_table(records, notes):
    runs = group(records, "small", "through")
    print(f"\nAn answer of 2 KB while a download fills the link, {notes['small']} of them, on new connections, in "
          "round trips. Goal: p95 at most 2.\n")
    row("", "p50", "p95", "worst")
    row("---", *["--:"] * 3)
    for through, label in (("direct", "direct"), ("pair", "through the pair")):
        trips = sorted(it["seconds"] / (float(notes["ms"]) / 1000) for it in runs[through])
        at = lambda percent: trips[min(len(trips) - 1, len(trips) * percent // 100)]
        row(label, f"{at(50):.2f}", f"{at(95):.2f}", f"{trips[-1]:.2f}")


if __name__ == "__main__":
    globals()[f"command_{sys.argv[1]}"](*sys.argv[2:])
