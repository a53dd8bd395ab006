"""Runs the whole suite, or a part of it, and says where the time went.

Steps are functions of steps.sh. Test programs are built once, by one call of Cargo, and run here, one test after the
other. Two lanes work side by side: what waits in real time (daemons, the lab, the demonstration) one at a time, and
beside it, at a lower priority, what computes. A lane that has nothing left helps the other one.
"""

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
LOGS = TARGET / "test-logs"

# Crates whose tests run another crate's program.
RUNS = {"lab": ["daemon"]}
# Crates whose tests from outside wait in real time: all of them, or those of the named modules.
WAITS = {
    "daemon": None,
    "host": None,
    "lab": {
        "book", "endings", "events", "far", "gateway", "ordinary_user", "real", "refusals", "schemes", "transfers",
        "troubles",
    },
}
FIRST = ["formatting", "scripts_parse", "shell_scripts"]
COMPUTE = ["compiled_once", "lints", "features", "fuzz_targets", "documentation", "examples"]
WAIT = ["demonstration"]
SHOWN = 10
# Stands in the reasons of ignored tests.
BY_LONG = "scripts/test --long runs it"
RESULT = re.compile(r"^test (?P<name>\S+)(?: - should panic)? \.\.\. (?P<verdict>ok|FAILED|ignored)(?P<why>.*)$")


@dataclass
class Program:
    """A test program that Cargo has built."""

    package: str
    name: str
    executable: Path
    folder: Path
    is_fresh: bool
    is_unit: bool
    build_seconds: float = 0.0

    def __str__(self):
        if self.is_unit:
            return f"{self.package}, unit tests"
        return f"{self.crate}, tests" + ("" if self.name == self.crate else f" of {self.name}")

    @property
    def crate(self):
        return self.package.removesuffix("-tests")

    def whole_name(self, test):
        parts = [self.crate] if self.is_unit or self.name == self.crate else [self.crate, self.name]
        return "::".join([*parts, test])

    def environment(self):
        return {**os.environ, "CARGO_MANIFEST_DIR": str(self.folder), "CARGO_PKG_NAME": self.package}

    def list(self):
        out = subprocess.run(
            [self.executable, "--list", "--format=terse"],
            cwd=self.folder, env=self.environment(), check=True, capture_output=True, text=True,
        ).stdout
        return [line.removesuffix(": test") for line in out.splitlines() if line.endswith(": test")]


@dataclass
class Job:
    """A step, or tests of one program."""

    name: str
    command: list
    folder: Path = ROOT
    environment: dict = field(default_factory=lambda: dict(os.environ))
    program: Program | None = None
    seconds: float = 0.0
    code: int | None = None
    tests: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    ignored: list = field(default_factory=list)

    def whole_name(self, test):
        return self.program.whole_name(test) if self.program else f"{self.name}: {test}"

    def failed(self):
        return [name for name, verdict, _ in self.tests if verdict == "FAILED"]

    def passed(self):
        return sum(verdict == "ok" for _, verdict, _ in self.tests)


class Running:
    """Runs jobs, each in a process group of its own, and ends these groups when this program ends."""

    def __init__(self):
        self.groups = set()
        # Reentrant: a signal may come while it is held.
        self.lock = threading.RLock()
        self.is_over = False

    def run(self, job, niceness=0):
        with self.lock:
            if self.is_over:
                return
            process = subprocess.Popen(
                job.command, cwd=job.folder, env=job.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
                preexec_fn=(lambda: os.nice(niceness)) if niceness else None,
            )
            self.groups.add(process.pid)
        begun = last = time.monotonic()
        log_path = LOGS / (re.sub(r"[^\w.-]+", "-", job.name) + ".log")
        with open(log_path, "w") as log:
            errors = threading.Thread(target=self.read_errors, args=(process, job, log))
            errors.start()
            for line in process.stdout:
                log.write(line)
                now = time.monotonic()
                if self.note(job, line, now - last):
                    last = now
            errors.join()
            job.code = process.wait()
        job.seconds = time.monotonic() - begun
        with self.lock:
            self.groups.discard(process.pid)
            self.tell(job, log_path)

    @staticmethod
    def read_errors(process, job, log):
        for line in process.stderr:
            log.write(line)
            if "SKIPPED:" in line:
                job.skipped.append(line.strip())

    @staticmethod
    def note(job, line, seconds):
        """Notes what a line says. Whether it is a test's result."""
        if "SKIPPED:" in line:
            job.skipped.append(line.strip())
        found = RESULT.match(line)
        if not found:
            return False
        if found["verdict"] == "ignored":
            job.ignored.append(f"{job.whole_name(found['name'])}{found['why']}")
        else:
            job.tests.append((found["name"], found["verdict"], seconds))
        return True

    @staticmethod
    def tell(job, log_path):
        count = f"{job.passed()} passed, " if job.tests else ""
        if job.code == 0:
            say(f"=== {job.name}: {count}{job.seconds:.0f} s")
        else:
            say(log_path.read_text().rstrip())
            say(f"=== {job.name}: FAILED with status {job.code}, {count}{job.seconds:.0f} s")
        for line in job.skipped:
            say(line)

    def end(self):
        with self.lock:
            self.is_over = True
            groups = list(self.groups)
        for group in groups:
            try:
                os.killpg(group, signal.SIGTERM)
            except ProcessLookupError:
                pass


def say(text):
    print(text, flush=True)


def step(name, **environment):
    return Job(name, ["bash", str(HERE / "steps.sh"), name], environment={**os.environ, **environment})


def packages_options(packages):
    return [word for name in packages for word in ("-p", name)]


def build(running, packages):
    """Builds test programs by one call of Cargo. Returns the job and the programs."""
    messages = LOGS / "build.json"
    words = ["cargo", "test", "--no-run", "--locked", "--timings", "--message-format=json-render-diagnostics"]
    words += packages_options(packages)
    job = Job("build of the tests", ["bash", "-c", f"{shlex.join(words)} >{shlex.quote(str(messages))}"])
    running.run(job)
    programs = []
    if job.code == 0:
        for line in messages.read_text().splitlines():
            it = json.loads(line)
            if it.get("executable") and it["profile"]["test"]:
                folder = Path(it["manifest_path"]).parent
                package = package_of(it["package_id"])
                is_unit = it["target"]["kind"] != ["test"]
                programs.append(
                    Program(package, it["target"]["name"], Path(it["executable"]), folder, it["fresh"], is_unit)
                )
        add_build_times(programs)
    return job, programs


def package_of(identity):
    """The name in `path+file:///folder/name#1.0.0` or `path+file:///folder#name@1.0.0`."""
    folder, version = identity.split("#")
    return version.split("@")[0] if "@" in version else folder.rsplit("/", 1)[-1]


def add_build_times(programs):
    """Reads from Cargo's page of timings how long each program was compiled and linked."""
    try:
        page = (TARGET / "cargo-timings" / "cargo-timing.html").read_text()
        units = json.loads(re.search(r"const UNIT_DATA = (\[.*?\]);\n", page, re.S)[1])
    except (OSError, TypeError, ValueError):
        return
    took = {}
    for unit in units:
        # Like ` mesh "test" (test)`.
        if target := re.fullmatch(r'\s*(\S+) "(\w+)" \(test\)', unit["target"]):
            took[unit["name"], target[1], target[2] != "test"] = unit["duration"]
    for program in programs:
        program.build_seconds = took.get((program.package, program.name, program.is_unit), 0.0)


def jobs_of(program, pattern):
    """The tests of a program as jobs: one of what computes, if there is any, and one for each module of what waits."""
    waits = set() if program.is_unit else WAITS.get(program.package, set())
    computing, waiting = [], {}
    for test in program.list():
        module = test.split("::")[0]
        if pattern not in program.whole_name(test):
            continue
        if waits is None or module in waits:
            waiting.setdefault(module, []).append(test)
        else:
            computing.append(test)

    def job(name, tests):
        command = [str(program.executable), "--exact", "--test-threads=1", *tests]
        return Job(name, command, program.folder, program.environment(), program)

    compute = [job(str(program), computing)] if computing else []
    return compute, [job(f"{program.crate}, {module}", tests) for module, tests in waiting.items()]


def lanes(running, compute, wait):
    """Runs two lists of jobs side by side. What waits leaves most of a core idle: when nothing is left to compute, two
    of it run at a time."""
    queues, lock = {"compute": list(compute), "wait": list(wait)}, threading.Lock()

    def work(order):
        while True:
            with lock:
                queue = next((queues[name] for name in order if queues[name]), None)
                if queue is None:
                    return
                job = queue.pop(0)
                niceness = 0 if any(job is it for it in wait) else 10
            running.run(job, niceness)

    orders = (["wait", "compute"], ["compute", "wait"])
    threads = [threading.Thread(target=work, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def processor_seconds():
    """What all processors have worked since the machine's start, and what they could have."""
    fields = [int(it) for it in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    total, idle = sum(fields), fields[3] + fields[4]
    return total - idle, total


def budgets():
    rows = (line.split("#")[0].split() for line in (HERE / "budgets.txt").read_text().splitlines())
    return {row[0]: (float(row[1]), float(row[2])) for row in rows if row}


def report(jobs, programs, began, worked):
    tests = [(seconds, job, name) for job in jobs if job.program for name, _, seconds in job.tests]
    say("\nThe slowest steps, in seconds:")
    for job in sorted(jobs, key=lambda it: -it.seconds)[:SHOWN]:
        say(f"{job.seconds:8.1f}  {job.name}")
    if tests:
        say("The slowest tests:")
        for seconds, job, name in sorted(tests, key=lambda it: -it[0])[:SHOWN]:
            say(f"{seconds:8.1f}  {job.program.whole_name(name)}")
        say("What each test program cost, in seconds, and its size:")
        say(f"{'build':>8}{'run':>8}{'MB':>6}  program")
        ran = [it for it in programs if any(job.program is it for job in jobs)]
        for it in sorted(ran, key=str):
            run = sum(job.seconds for job in jobs if job.program is it)
            size = it.executable.stat().st_size / 1e6
            built = "-" if it.is_fresh else f"{it.build_seconds:.1f}"
            say(f"{built:>8}{run:8.1f}{size:6.0f}  {it}")
        over_budget(jobs, programs)
    failed = 0
    for job in jobs:
        if job.code != 0:
            say(f"FAILED: {job.name}" + "".join(f"\n    {name}" for name in job.failed()))
            failed += len(job.failed()) or 1
    skipped = [line for job in jobs for line in job.skipped]
    ignored = [line for job in jobs for line in job.ignored]
    if skipped or ignored:
        say(f"!!! {len(skipped) + len(ignored)} NOT TESTED HERE:")
        for line in skipped + ignored:
            say(f"    {line}")
    # A test that finds that it cannot run says so and returns: its program counts it as passed.
    of_tests = sum(len(job.skipped) for job in jobs if job.tests)
    passed = sum(job.passed() for job in jobs) - of_tests
    busy, total = (now - then for now, then in zip(processor_seconds(), worked))
    say(f"{time.monotonic() - began:.0f} s in all; the processors worked {busy / max(total, 1):.0%} of it")
    say(f"{passed} passed, {failed} failed, {len(skipped) + len(ignored)} skipped")
    return failed == 0


def over_budget(jobs, programs):
    for crate, (build_max, run_max) in budgets().items():
        ours = [it for it in programs if it.crate == crate]
        built = sum(it.build_seconds for it in ours if not it.is_fresh)
        run = sum(job.seconds for job in jobs if job.program in ours)
        for what, spent, limit in (("build", built, build_max), ("run", run, run_max)):
            if spent > limit:
                say(f"OVER BUDGET: the tests of {crate} took {spent:.0f} s to {what}; scripts/test.d/budgets.txt has {limit:.0f}")


def long_steps():
    rows = (line.split("#")[0].split() for line in (HERE / "long.txt").read_text().splitlines())
    return [row[1] for row in rows if row]


def packages_of(crate):
    """The packages that hold the tests of a crate."""
    both = [crate, f"{crate}-tests"]
    return [name for name in both if any(f'name = "{name}"\n' in it.read_text() for it in ROOT.glob("crates/**/Cargo.toml"))]


@dataclass
class Plan:
    """What is asked for. No packages: all of them."""

    packages: list = field(default_factory=list)
    pattern: str = ""
    first: list = field(default_factory=list)
    compute: list = field(default_factory=list)
    wait: list = field(default_factory=list)
    after: list = field(default_factory=list)

    @classmethod
    def of(cls, words):
        if words.what is None:
            return cls(first=FIRST, compute=COMPUTE, wait=WAIT, after=long_steps() if words.long else [])
        of_crate = packages_of(words.what)
        if of_crate:
            return cls(packages=[*of_crate, "house"], first=["formatting"], compute=["lints"])
        return cls(pattern=words.what)

    def built(self):
        return self.packages + [needed for name in self.packages for needed in RUNS.get(name, [])]

    def jobs(self, programs):
        """The jobs of each lane."""
        compute = [step(name, LINTED=shlex.join(packages_options(self.packages))) for name in self.compute]
        # The demonstration runs what the tests have built.
        wait = [step(name, HEARSAY_BIN=str(TARGET / "debug" / "hearsay")) for name in self.wait]
        for program in programs:
            if not self.packages or program.package in self.packages:
                computing, waiting = jobs_of(program, self.pattern)
                compute += computing
                wait += waiting
        return compute, wait


def main():
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="?", metavar="CRATE|PATTERN",
                        help="only the checks of this crate, or only tests whose names (CRATE::MODULE::TEST) contain this")
    parser.add_argument("--long", action="store_true", help="also what scripts/test.d/long.txt lists")
    words = parser.parse_args()
    began, worked = time.monotonic(), processor_seconds()
    os.chdir(ROOT)
    LOGS.mkdir(parents=True, exist_ok=True)
    running = Running()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: (running.end(), os._exit(128 + number)))
    plan = Plan.of(words)
    done = [step(name) for name in plan.first]
    for job in done:
        running.run(job)
    built, programs = build(running, plan.built())
    done.append(built)
    if built.code == 0:
        compute, wait = plan.jobs(programs)
        lanes(running, compute, wait)
        done += compute + wait
        for job in [step(name) for name in plan.after]:
            running.run(job)
            done.append(job)
            # Its tests are the others' ignored ones.
            for other in done:
                other.ignored = [line for line in other.ignored if BY_LONG not in line]
    is_good = report(done, programs, began, worked)
    if plan.pattern and built.code == 0 and not any(job.program for job in done):
        say(f"scripts/test: no crate is called {plan.pattern}, and no test's name contains it (CRATE::MODULE::TEST)")
        is_good = False
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
