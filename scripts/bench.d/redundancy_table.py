"""The figures of Wanax's section 4.3 beside what was counted: NEWS.json ABOUT KERNEL.json ABOUT [FILE].

The inputs are from `hearsay-lab analyze redundancy --json`; FILE receives what the tables show, as JSON.
"""

import json
import os
import pathlib
import platform
import sys
import time

from uplink import processor, row

NAMES = ("news", "kernel")


def main():
    found = {name: Found(json.loads(pathlib.Path(path).read_text())) for name, path in zip(NAMES, sys.argv[1:5:2])}
    about = [pathlib.Path(path).read_text().splitlines()[1] for path in sys.argv[2:6:2]]
    machine = {"processor": processor(), "kernel": platform.release(), "load": os.getloadavg()[0]}
    print(f"\n{time.strftime('%Y-%m-%d')}, {machine['processor']}, Linux {machine['kernel']}, load {machine['load']:.1f}.\n")
    for name, what in zip(NAMES, about):
        print(f"- {name}: {found[name].bytes / 1e6:.1f} MB counted; {what}")
    figures, orders = compare(found), order(found)
    print("\nFigures of the text (section 4.3). *Names of hits*: less these names only.\n")
    row("", "paper: news", "here", "names of hits", "paper: kernel", "here", "names of hits")
    row("---", *["--:"] * 6)
    for label, unit, news, kernel in figures:
        row(label + (f", {unit}" if unit else ""), *news, *kernel)
    print("\nOrder of the schemes, as the paper has it.\n")
    row("", *NAMES, *(f"{name}, names of hits" for name in NAMES))
    row(*["---"] * 5)
    for label, *verdicts in orders:
        row(label, *verdicts)
    sizes(found)
    if len(sys.argv) > 5:
        kept = {"command": "scripts/bench redundancy", "machine": machine, "about": dict(zip(NAMES, about)),
                "figures": figures, "orders": orders, "found": {name: it.given for name, it in found.items()}}
        pathlib.Path(sys.argv[5]).write_text(json.dumps(kept, indent=1) + "\n")


class Found:
    """The schemes of an analysis."""

    def __init__(self, given):
        self.given = given
        self.bytes = sum(it["bytes"] for it in given["counted"])
        self.schemes = given["schemes"]
        self.smallest = min(it["average_bytes"][-1] for it in self.schemes)

    def of(self, kind, degree=None, smallest=None):
        """A scheme; without `smallest` the one with the smallest chunks."""
        some = [it for it in self.schemes if it["kind"] == kind and it["degree"] == degree]
        if smallest:
            some = [it for it in some if it["average_bytes"][-1] == smallest]
        return min(some, key=lambda it: it["average_bytes"][-1])

    def singles(self):
        return [it for it in self.schemes if it["kind"] == "src"]

    def best_single(self, which):
        return max(self.singles(), key=lambda it: it[which])


REAL, HITS = "real_savings", "savings_without_names_of_misses"


def compare(found):
    """(what, unit, cells of the news, cells of the kernel): the paper's figure, ours, ours less the names of hits only."""
    src, mrc = (lambda it: it.of("src")), (lambda it: it.of("mrc", 2))
    percent = lambda share: f"{100 * share:.1f}"
    both = lambda value: lambda it: (value(it, REAL), value(it, HITS))
    one = lambda value: lambda it: (value(it), "")
    best = lambda it, which: it.best_single(which)["average_bytes"][-1]
    rows = [
        ("redundancy: ideal, MRC degree 2", "%", "72", "94", one(lambda it: percent(mrc(it)["ideal_savings"]))),
        ("SRC's best chunk", "bytes", "256", "256", both(lambda it, which: str(best(it, which)))),
        ("SRC at its best", "%", "58", "82", both(lambda it, which: percent(it.best_single(which)[which]))),
        ("SRC, 32 B", "%", "25", "36", both(lambda it, which: percent(src(it)[which]))),
        ("MRC degree 2, 32 B", "%", "66", "92", both(lambda it, which: percent(mrc(it)[which]))),
        ("bytes that cross: SRC's best over MRC", "times", "1.24", "2.25",
         both(lambda it, which: f"{(1 - it.best_single(which)[which]) / (1 - mrc(it)[which]):.2f}")),
        ("disk operations, 32 B: SRC over MRC", "times", "8.5", "22.7",
         one(lambda it: f"{src(it)['disk_operations'] / mrc(it)['disk_operations']:.1f}")),
        ("memory of the index, 32 B: SRC over MRC", "times", "~10", "~10",
         one(lambda it: f"{src(it)['index_bytes'] / mrc(it)['index_bytes']:.1f}")),
        ("MRC-Small over MRC", "times", "~10", "~30",
         one(lambda it: f"{it.of('mrc-small', 2)['index_bytes'] / mrc(it)['index_bytes']:.1f}")),
        ("MRC-Large over MRC", "times", "~2", "~2",
         one(lambda it: f"{it.of('mrc-large', 2)['index_bytes'] / mrc(it)['index_bytes']:.2f}")),
        *((f"share of savings in chunks of 4 KiB and more, MRC degree {degree}", "%", "40–50", "40–50",
           one(lambda it, degree=degree: percent(large(it.of("mrc", degree))))) for degree in (2, 4, 8)),
        ("ours (not in the paper)", "%", "", "", both(lambda it, which: percent(it.of("ours")[which]))),
    ]
    return [(label, unit, (news, *value(found["news"])), (kernel, *value(found["kernel"])))
            for label, unit, news, kernel, value in rows]


def large(scheme):
    """The share of hits of 4 KiB and more on average in what a scheme saves."""
    levels = list(zip(scheme["average_bytes"], scheme["savings_by_level"]))
    return sum(share for average, share in levels if average >= 4096) / sum(share for _, share in levels)


def order(found):
    """(statement of the paper, verdicts: news and kernel with all names, and both with the names of hits only)."""
    mrc = lambda it: it.of("mrc", 2)
    trees = lambda it: [it.of("mrc", degree) for degree in (2, 4, 8)]
    speed = {REAL: "shedding", HITS: "shedding_without_names"}
    at = lambda scheme, which: [it[which] for it in scheme["effective"]]

    def ahead(it, which):
        """At every speed at least as fast as each SRC, within 0.5 %."""
        return all(a >= 0.995 * b for single in it.singles() for a, b in zip(at(mrc(it), speed[which]), at(single, speed[which])))

    def some_ahead(it, which):
        """At every speed some tree is."""
        best = lambda schemes: [max(values) for values in zip(*(at(scheme, speed[which]) for scheme in schemes))]
        some = [scheme for scheme in it.schemes if scheme["kind"] == "mrc"]
        return all(a >= 0.995 * b for a, b in zip(best(some), best(it.singles())))

    same = lambda holds: lambda it, which: holds(it)
    statements = [
        ("ideal savings rise as SRC's chunks get smaller (figure 6)", same(lambda it: rising(it.singles(), "ideal_savings"))),
        ("SRC's savings have a peak between its smallest and its largest chunks", lambda it, which: it.smallest
         < it.best_single(which)["average_bytes"][-1] < 65536),
        ("MRC of each degree saves more than any SRC", lambda it, which: all(
            tree[which] > it.best_single(which)[which] for tree in trees(it))),
        ("MRC of degree 2 saves the most with the smallest chunks, within 1 point", lambda it, which: mrc(it)[which]
         > max(other[which] for other in it.schemes if other["kind"] == "mrc" and other["degree"] == 2) - 0.01),
        ("MRC reads no more often than SRC of the same smallest chunks (figure 7)", same(lambda it: all(
            tree["disk_operations"] <= it.of("src", None, tree["average_bytes"][-1])["disk_operations"]
            for tree in it.schemes if tree["kind"] == "mrc"))),
        ("memory: MRC < MRC-Large < SRC < MRC-Small (figure 8)", same(lambda it: ascending(
            it.of(*which)["index_bytes"] for which in (("mrc", 2), ("mrc-large", 2), ("src", None), ("mrc-small", 2))))),
        ("MRC of degree 2 and 32 B is as fast as any SRC, at each speed (figure 10)", ahead),
        ("some MRC is as fast as any SRC, at each speed", some_ahead),
        ("no scheme with load shedding falls below the link's speed", lambda it, which: all(
            value >= 0.995 for scheme in it.schemes for value in at(scheme, speed[which]))),
        ("without it MRC does", same(lambda it: at(mrc(it), "not_shedding")[-1] < 1)),
    ]
    return [(label, *("yes" if holds(found[name], which) else "NO" for which in (REAL, HITS) for name in NAMES))
            for label, holds in statements]


def rising(singles, which):
    by_size = sorted(singles, key=lambda it: -it["average_bytes"][-1])
    return ascending(it[which] for it in by_size)


def ascending(values):
    values = list(values)
    return all(a < b for a, b in zip(values, values[1:]))


def sizes(found):
    """Figures 6 and 10 in numbers."""
    print("\nReal savings, %, by the average length of the smallest chunks, bytes (figure 6).\n")
    lengths = sorted({it["average_bytes"][-1] for it in found["news"].singles()})
    row("", *map(str, lengths))
    row("---", *["--:"] * len(lengths))
    for name in NAMES:
        for label, kind, degree, which in (("SRC ideal", "src", None, "ideal_savings"), ("SRC", "src", None, REAL),
                                           *((f"MRC degree {degree}", "mrc", degree, REAL) for degree in (2, 4, 8))):
            by_length = {it["average_bytes"][-1]: it[which] for it in found[name].schemes
                         if (it["kind"], it["degree"]) == (kind, degree)}
            row(f"{name}: {label}", *(f"{100 * by_length[it]:.1f}" if it in by_length else "" for it in lengths))

    links = [it["link_mbps"] for it in found["news"].schemes[0]["effective"]]
    print("\nEffective bandwidth, multiple of the link's, by its speed in Mbit/s, with load shedding where neither misses nor what is shed "
          "cost a name; in brackets with all names (figure 10).\n")
    row("", *(f"{it:g}" for it in links))
    row("---", *["--:"] * len(links))
    for name in NAMES:
        shown = [found[name].of("src", None, size) for size in (32, 256, 1024, 8192, 65536)]
        for it in (*shown, *(found[name].of("mrc", degree) for degree in (2, 4, 8)), found[name].of("ours")):
            degree = f" degree {it['degree']}" if it["degree"] else ""
            row(f"{name}: {it['kind']}{degree}, {it['average_bytes'][-1]} B",
                *(f"{at['shedding_without_names']:.2f} ({at['shedding']:.2f})" for at in it["effective"]))


main()
