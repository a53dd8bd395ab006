"""Measures TCP flows through the uplink pair for scripts/bench.d/flows.sh: COMMAND ARGUMENTS...

`content` makes what is transferred, `serve` is the origin, `table` prints; all others measure as a client, and append records,
a JSON object a line, to the file that $results names.
"""

import asyncio
import hashlib
import io
import json
import os
import pathlib
import platform
import random
import shutil
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import time
from statistics import median

import pairs
from uplink import add, memory, processor, processor_seconds, row, shown

ORIGIN = "198.51.100.2"
FILES_PORT, EXCHANGE_PORT = 5001, 4450
# Whom the origin sees.
CLIENT, FAR_END = "10.78.0.2", "198.51.100.1"
FLOWS, FLOW_BYTES = 200, 10_000
# The goals: milliseconds and round trips that an exchange may take longer; seconds a GB.
DELAY_GOAL_MS, WORK_GOAL = 6, 20


# What is transferred


def command_content(folder):
    """Two versions of a tree, a repository with both, two dumps of a database, two versions of a document."""
    folder = pathlib.Path(folder)
    for age, archive in zip(("old", "new"), pairs.tree(random.Random("flows"), 6)):
        with tarfile.open(fileobj=io.BytesIO(archive)) as tree:
            tree.extractall(folder / age, filter="data")
    repository(folder)
    files = folder / "files"
    files.mkdir()
    for age, dump in zip(("old", "new"), dumps(random.Random("dump"))):
        (files / f"dump-{age}").write_bytes(dump)
    for age, document in zip(("old", "new"), documents(random.Random("document"))):
        (files / f"document-{age}").write_bytes(document)


def dumps(chance):
    """A database of three tables as SQL, and a day later: some rows are changed, some are new, few are gone."""
    words = pairs.Words(chance)
    tables = {name: [record(words, n) for n in range(count)]
              for name, count in (("customer", 12_000), ("item", 30_000), ("entry", 25_000))}
    old = sql(tables, "2008-10-06")
    for rows in tables.values():
        for n in chance.sample(range(len(rows)), len(rows) // 50):
            rows[n] = record(words, rows[n][0])
        for n in sorted(chance.sample(range(len(rows)), len(rows) // 400), reverse=True):
            del rows[n]
        rows += [record(words, rows[-1][0] + n) for n in range(1, len(rows) // 60)]
    return old, sql(tables, "2008-10-07")


def record(words, number):
    chance = words.random
    return (number, " ".join(words.take(3)), chance.randrange(10**6), f"2008-{chance.randint(1, 9):02}-{chance.randint(1, 28):02}",
            " ".join(words.take(chance.randint(2, 9))))


def sql(tables, day):
    out = [f"-- Dump of {day}\n"]
    for name, rows in tables.items():
        out.append(f"CREATE TABLE {name} (id integer, name text, amount integer, day date, remark text);\n")
        for start in range(0, len(rows), 100):
            values = ",\n".join(f"({n}, '{a}', {b}, '{c}', '{d}')" for n, a, b, c, d in rows[start:start + 100])
            out.append(f"INSERT INTO {name} VALUES\n{values};\n")
    return "".join(out).encode()


def documents(chance):
    """A document of an office, and the same after some edits."""
    words = pairs.Words(chance)
    paragraphs = [pairs.paragraph(words) for _ in range(2000)]
    old = "\n".join(paragraphs).encode()
    for n in chance.sample(range(len(paragraphs)), 20):
        paragraphs[n] = pairs.paragraph(words)
    return old, "\n".join(paragraphs).encode()


def repository(folder):
    """A history that grows to the old tree in twelve commits on `main`, and one commit more on `next`: the new tree."""
    checkout, bare = folder / "checkout", folder / "git" / "tree.git"
    git(folder, "init", "-q", "--bare", "-b", "main", bare)
    git(folder, "init", "-q", "-b", "main", checkout)
    files = sorted(it.relative_to(folder / "old") for it in (folder / "old").rglob("*") if it.is_file())
    for number in range(12):
        for path in files[number::12]:
            copy(folder / "old" / path, checkout / path)
        commit(checkout, number)
    git(checkout, "push", "-q", bare, "main:main")
    shutil.rmtree(checkout / "tree")
    shutil.copytree(folder / "new", checkout, dirs_exist_ok=True)
    commit(checkout, 12)
    git(checkout, "push", "-q", bare, "main:next")
    shutil.rmtree(checkout)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def commit(checkout, number):
    date = f"{1_700_000_000 + 86_400 * number} +0000"
    git(checkout, "add", "-A")
    git(checkout, "commit", "-q", "-m", f"Change {number}", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)


def git(where, *arguments, **variables):
    """Runs git with nobody's settings; what it printed."""
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER")
           for what, value in (("NAME", "bench"), ("EMAIL", "bench@example.org"))}
    plain = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    return run(["git", *arguments], where, {**os.environ, **who, **plain, **variables})


def run(command, where, environment=None):
    done = subprocess.run(command, cwd=where, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=900)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


# The origin


def command_serve(folder):
    """Files: the server speaks first, with the address that it sees; then a line with a name, and the bytes until the end.
    Exchanges: two lengths and bytes come, as many bytes as the second length go back."""
    asyncio.run(serve(pathlib.Path(folder)))


async def serve(folder):
    limit = {"limit": 1 << 20, "backlog": 1024}
    files = await asyncio.start_server(lambda *it: one_file(folder, *it), ORIGIN, FILES_PORT, **limit)
    await asyncio.start_server(exchanges, ORIGIN, EXCHANGE_PORT, **limit)
    await files.serve_forever()


async def one_file(folder, reader, writer):
    try:
        writer.write(f"220 {writer.get_extra_info('peername')[0]}\n".encode())
        name = (await reader.readline()).decode().strip()
        if not name:
            return
        for part in parts(folder, name):
            writer.write(part)
            await writer.drain()
        writer.write_eof()
        await reader.read()
    except OSError:
        pass  # The client has gone.
    finally:
        writer.close()


def parts(folder, name):
    """The bytes of a file, or `noise/SEED/SIZE`."""
    if name.startswith("noise/"):
        _, seed, size = name.split("/")
        yield from noise(int(seed), int(size))
        return
    with open(folder / name, "rb") as file:
        while part := file.read(1 << 18):
            yield part


def noise(seed, size):
    chance = random.Random(seed)
    for start in range(0, size, 1 << 16):
        yield chance.randbytes(min(1 << 16, size - start))


async def exchanges(reader, writer):
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while True:
            size, answer = struct.unpack("!II", await reader.readexactly(8))
            said = await reader.readexactly(size)
            writer.write(reply(said, answer))
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        writer.close()


def reply(said, size):
    """What answers a request: bytes that follow from it."""
    return b"".join(noise(int.from_bytes(hashlib.sha256(said).digest()[:8]), size))


# Measuring


class Counted:
    """The bytes of IP packets that the link delivers, and the time, from here to `end`."""

    def __init__(self):
        self.before, self.began = link_bytes(), time.perf_counter()

    def end(self, **record):
        """Waits until the link is quiet."""
        seconds, now = time.perf_counter() - self.began, link_bytes()
        while True:
            time.sleep(1)
            now, earlier = link_bytes(), now
            if sum(now) - sum(earlier) < 400:
                break
        add(seconds=seconds, to_client=now[0] - self.before[0], to_origin=now[1] - self.before[1], **record)


def link_bytes():
    """To the gateway, and to the far end."""
    said = [subprocess.run(["ip", "netns", "exec", namespace, "cat", "/sys/class/net/slow0/statistics/rx_bytes"],
                           capture_output=True, check=True, text=True).stdout for namespace in ("gateway", "far")]
    return [int(it) for it in said]


def command_bytes(through, number, folder):
    """Trees, repositories, dumps and a document, once and again."""
    folder = pathlib.Path(folder)
    mine = folder / "client"
    shutil.rmtree(mine, ignore_errors=True)
    mine.mkdir()
    steps = [*rsync_steps(folder, mine), *git_steps(folder, mine), *dump_steps(folder, through), *document_steps(folder)]
    for name, size, step in steps:
        counted = Counted()
        step()
        counted.end(part="bytes", through=through, name=name, size=size)
    shutil.rmtree(mine)


def rsync_steps(folder, mine):
    def step(module, target):
        run(["rsync", "-rt", "--delete", f"rsync://{ORIGIN}/{module}/", f"{mine / target}/"], mine)
        if digest(folder / module) != digest(mine / target):
            sys.exit(f"WRONG BYTES: rsync of {module} to {target}")

    sizes = {age: sum(it.stat().st_size for it in (folder / age).rglob("*") if it.is_file()) for age in ("old", "new")}
    return [("rsync, the first time", sizes["old"], lambda: step("old", "a")),
            ("rsync of the changed tree", sizes["new"], lambda: step("new", "a")),
            ("rsync of the changed tree, another client", sizes["new"], lambda: step("new", "b"))]


def digest(folder):
    """Of all paths and bytes below a folder."""
    sums = hashlib.sha256()
    for path in sorted(it for it in folder.rglob("*") if it.is_file()):
        content = path.read_bytes()
        sums.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return sums.digest()


def git_steps(folder, mine):
    url = f"git://{ORIGIN}/tree.git"
    heads = {branch: git(folder / "git/tree.git", "rev-parse", branch).strip() for branch in ("main", "next")}

    def check(clone, branch):
        if git(mine / clone, "rev-parse", f"origin/{branch}").strip() != heads[branch]:
            sys.exit(f"WRONG COMMIT: {clone} {branch}")

    def clone(branch, name):
        git(mine, "clone", "-q", "--single-branch", "-b", branch, url, name)
        check(name, branch)

    def fetch():
        git(mine / "one", "fetch", "-q", "origin", "next:refs/remotes/origin/next")
        check("one", "next")

    size = sum(it.stat().st_size for it in (folder / "git/tree.git/objects").rglob("*") if it.is_file())
    return [("git clone", size, lambda: clone("main", "one")), ("git fetch of a commit", None, fetch),
            ("git clone, another client", size, lambda: clone("next", "two"))]


def dump_steps(folder, through):
    def step(age):
        file = folder / "files" / f"dump-{age}"
        if receive(file.name, through) != file.read_bytes():
            sys.exit(f"WRONG BYTES: {file.name}")

    sizes = {age: (folder / "files" / f"dump-{age}").stat().st_size for age in ("old", "new")}
    return [("SQL dump", sizes["old"], lambda: step("old")), ("SQL dump a day later", sizes["new"], lambda: step("new"))]


def receive(name, through, port=FILES_PORT):
    """The bytes of a file, after the banner of a server that speaks first."""
    with socket.create_connection((ORIGIN, port), timeout=600) as flow:
        stream = flow.makefile("rb")
        check_banner(stream.readline().decode(), through)
        flow.sendall(f"{name}\n".encode())
        return stream.read()


def check_banner(said, through):
    """The origin must see whom it should: otherwise flows take another way than the one that is measured."""
    expected = CLIENT if through == "direct" else FAR_END
    if said != f"220 {expected}\n":
        sys.exit(f"the origin saw {said.strip()!r} instead of {expected}: flows do not go {through}")


def command_way(through):
    """Ends well if flows take this way."""
    with socket.create_connection((ORIGIN, FILES_PORT), timeout=10) as flow:
        check_banner(flow.makefile("rb").readline().decode(), through)


def document_steps(folder):
    """Small writes and reads, as of a file on a shared disk."""
    def step(age):
        content, chance = (folder / "files" / f"document-{age}").read_bytes(), random.Random("writes")
        # Not each write is awaited before the next: programs have some under way.
        with Exchanges() as exchanges:
            at, under_way = 0, []
            while at < len(content) or under_way:
                if at < len(content) and len(under_way) < 8:
                    size = chance.randint(64, 4096)
                    under_way.append(exchanges.ask(content[at:at + size], 64))
                    at += size
                else:
                    exchanges.take(*under_way.pop(0))

    size = {age: (folder / "files" / f"document-{age}").stat().st_size for age in ("old", "new")}
    return [("small writes of a document", size["old"], lambda: step("old")),
            ("small writes of the edited document", size["new"], lambda: step("new"))]


class Exchanges:
    """A connection on which requests are answered."""

    def __enter__(self):
        self.flow = socket.create_connection((ORIGIN, EXCHANGE_PORT), timeout=120)
        self.flow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.stream = self.flow.makefile("rb")
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.flow.close()

    def ask(self, said, size):
        self.flow.sendall(struct.pack("!II", len(said), size) + said)
        return said, size

    def take(self, said, size):
        if self.stream.read(size) != reply(said, size):
            sys.exit("WRONG BYTES: an exchange")


def command_delay(through, number):
    """Exchanges one after another, of 64 bytes to 4 KiB each way; the same sizes in each round and each way."""
    chance = random.Random("delay")
    times = []
    began = time.perf_counter()
    with Exchanges() as exchanges:
        exchanges.take(*exchanges.ask(b"first", 1))
        first = time.perf_counter() - began
        for n in range(100):
            said, size = random.Random(f"{number} {n}").randbytes(chance.randint(64, 4096)), chance.randint(64, 4096)
            expected = reply(said, size)
            began = time.perf_counter()
            exchanges.ask(said, size)
            got = exchanges.stream.read(size)
            times.append(time.perf_counter() - began)
            if got != expected:
                sys.exit("WRONG BYTES: an exchange")
            # Programs think, too; and what waits for an acknowledgement would hide in a rhythm.
            time.sleep(chance.uniform(0, 0.05))
    add(part="delay", through=through, round=int(number), first=first, times=times)


def command_many(through, number):
    """Many short flows at once, beside a long one."""
    stop, long = threading.Event(), {"bytes": 0, "ended": False}
    filler = threading.Thread(target=long_flow, args=(through, stop, long, int(number)), daemon=True)
    filler.start()
    # Two round trips of handshakes, and some of slow start.
    time.sleep(12)
    if long["bytes"] == 0:
        sys.exit("the long flow did not begin")
    before, began = long["bytes"], time.perf_counter()
    times, failed = asyncio.run(short_flows(through, 10_000 * int(number)))
    seconds = time.perf_counter() - began
    if long["ended"]:
        sys.exit("the long flow has ended too early")
    add(part="many", through=through, times=sorted(times), failed=failed, seconds=seconds, long_bytes=long["bytes"] - before)
    stop.set()
    filler.join(timeout=30)


def long_flow(through, stop, long, number):
    with socket.create_connection((ORIGIN, FILES_PORT), timeout=600) as flow:
        stream = flow.makefile("rb")
        check_banner(stream.readline().decode(), through)
        flow.sendall(f"noise/{number}/200000000\n".encode())
        while not stop.is_set() and (part := stream.read1(1 << 16)):
            long["bytes"] += len(part)
    long["ended"] = not stop.is_set()


async def short_flows(through, seed):
    """Seconds of each that succeeded, and why others failed."""
    ended = await asyncio.gather(*(short_flow(through, seed + n) for n in range(FLOWS)), return_exceptions=True)
    failed = [repr(it) for it in ended if isinstance(it, BaseException)]
    return [it for it in ended if not isinstance(it, BaseException)], failed


async def short_flow(through, seed):
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection(ORIGIN, FILES_PORT)
    try:
        check_banner((await reader.readline()).decode(), through)
        writer.write(f"noise/{seed}/{FLOW_BYTES}\n".encode())
        got = await asyncio.wait_for(reader.read(-1), 600)
    finally:
        writer.close()
    if got != b"".join(noise(seed, FLOW_BYTES)):
        raise ValueError(f"{len(got)} bytes, or wrong ones")
    return time.perf_counter() - began


def command_work(through, number, folder):
    """Processor time for bytes that are new: incompressible, and a source tree."""
    for content in ("noise", "tree"):
        size = (pathlib.Path(folder) / "files" / content).stat().st_size
        before = {it: processor_seconds(it) for it in ("gateway_pid", "far_pid")}
        began = time.perf_counter()
        if hashlib.sha256(receive(content, through)).digest() != hashlib.sha256((pathlib.Path(folder) / "files" / content).read_bytes()).digest():
            sys.exit(f"WRONG BYTES: {content}")
        seconds = time.perf_counter() - began
        time.sleep(1)
        add(part="work", content=content, size=size, seconds=seconds, peak=memory("VmHWM"),
            **{short: (processor_seconds(it) - before[it]) / size * 1e9 for it, short in (("gateway_pid", "gateway"), ("far_pid", "far"))})


# Tables


def command_table(results, json_file=None):
    records = [json.loads(line) for line in pathlib.Path(results).read_text().splitlines()]
    notes = next(it["values"] for it in records if it["part"] == "note")
    machine = {"processor": processor(), "kernel": platform.release(), "load": os.getloadavg()[0]}
    date = time.strftime("%Y-%m-%d")
    print(f"\n{date}, {machine['processor']}, Linux {machine['kernel']}, load {machine['load']:.1f}. TCP {notes['congestion']}. "
          f"Medians (lowest–highest) of {notes['rounds']} rounds, each with new daemons.")
    for table in (bytes_table, delay_table, many_table, work_table):
        table([it for it in records if it["part"] == table.__name__.removesuffix("_table")], notes)
    if json_file:
        pathlib.Path(json_file).write_text(json.dumps(
            {"command": "scripts/bench uplink flows", "date": date, "machine": machine, "conditions": notes,
             "records": [it for it in records if it["part"] != "note"]}, indent=1) + "\n")


def bytes_table(records, notes):
    if not records:
        return
    print(f"\nKilobytes of IP over a link of {notes['kbps']} kbit/s, {notes['ms']} ms, to the client and to the origin; a row "
          "follows on the one before it.\n")
    row("", "content, kB", "direct: to client", "to origin", "s", "pair: to client", "to origin", "s", "pair / direct")
    row("---", *["--:"] * 8)
    for name in dict.fromkeys(it["name"] for it in records):
        cells, sums = [], {}
        for through in ("direct", "pair"):
            some = [it for it in records if (it["name"], it["through"]) == (name, through)]
            sums[through] = [it["to_client"] + it["to_origin"] for it in some]
            cells += [shown([it[way] / 1000 for it in some], 1) for way in ("to_client", "to_origin")]
            cells.append(shown([it["seconds"] for it in some], 1))
        size = next(it["size"] for it in records if it["name"] == name)
        ratio = f"{median(sums['pair']) / median(sums['direct']):.3f}" if all(sums.values()) else "–"
        row(name, f"{size / 1000:.0f}" if size else "", *cells, ratio)


def delay_table(records, notes):
    if not records:
        return
    trip = float(notes["ms"])
    print(f"\nExchanges of 64 bytes to 4 KiB each way on one connection, {len(records[0]['times'])} a round, in milliseconds. Goal: "
          f"through the pair at most {DELAY_GOAL_MS} ms and one round trip ({trip:g} ms) more than the same exchange took directly.\n")
    row("", "first, with the connection", "p50", "p95", "worst")
    row("---", *["--:"] * 4)
    for through in ("direct", "pair"):
        some = [it for it in records if it["through"] == through]
        if some:
            times = sorted(1000 * time for it in some for time in it["times"])
            row(through, shown([1000 * it["first"] for it in some], 1), *(f"{percentile(times, it):.1f}" for it in (50, 95, 100)))
    direct = {it["round"]: it["times"] for it in records if it["through"] == "direct"}
    added = sorted(1000 * (through - before) for it in records if it["through"] == "pair"
                   for through, before in zip(it["times"], direct.get(it["round"], [])))
    if added:
        row("added to the same exchange", "", *(f"{percentile(added, it):.1f}" for it in (50, 95, 100)))
        print(f"\n{sum(it > DELAY_GOAL_MS + trip for it in added)} of {len(added)} exchanges miss the goal.")


def percentile(values, percent):
    """Of sorted values, the least that as many are not above."""
    return values[max(0, -(-len(values) * percent // 100) - 1)]


def many_table(records, notes):
    if not records:
        return
    alone = FLOWS * FLOW_BYTES * 8 / 1e6
    print(f"\n{FLOWS} flows of {FLOW_BYTES / 1000:g} kB at once beside a long one, 1 Mbit/s, 1000 ms: seconds until a flow is complete. "
          f"The {FLOWS} alone take {alone:.0f} s of the link.\n")
    row("", "p50", "p95", "last", "failed", "the long one's share of the link meanwhile, %")
    row("---", *["--:"] * 5)
    for through in ("direct", "pair"):
        some = [it for it in records if it["through"] == through]
        if some:
            at = lambda percent: shown([percentile(it["times"], percent) for it in some if it["times"]], 1)
            row(through, at(50), at(95), at(100), shown([len(it["failed"]) for it in some], 0),
                shown([it["long_bytes"] * 8 / 1e4 / it["seconds"] for it in some], 0))
    for why in sorted({why for it in records for why in it["failed"]}):
        print(f"\n{why}")


def work_table(records, notes):
    if not records:
        return
    print(f"\nProcessor time, seconds for each GB of new content, over a fast link. Goal: {WORK_GOAL} at the gateway.\n")
    row("content", "MB", "gateway", "far end", "Mbit/s", "gateway's memory at most, MiB")
    row("---", *["--:"] * 5)
    for content, label in (("noise", "incompressible"), ("tree", "source tree")):
        some = [it for it in records if it["content"] == content]
        row(label, f"{some[0]['size'] / 1e6:.0f}", *(shown([it[which] for it in some], 2) for which in ("gateway", "far")),
            shown([it["size"] * 8 / 1e6 / it["seconds"] for it in some], 0), shown([it["peak"] for it in some], 1))


if __name__ == "__main__":
    globals()[f"command_{sys.argv[1]}"](*sys.argv[2:])
