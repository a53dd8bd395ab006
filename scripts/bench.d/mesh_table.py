"""Prints the runs of one part of `scripts/bench mesh` as a Markdown table."""

import json
import pathlib
import sys
from statistics import mean, median

SCHEMES = ("end-to-end", "default", "thcp", "ph-thcp")
KINDS = ("local", "ph-local", "remote", "gateway", "origin")


def main():
    part, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if part == "heard":
        return heard_table(folder)
    runs = [(path.stem, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
    {"path": path_table, "chains": chains_table, "emulab8": emulab8_table, "ditto": ditto_table}[part](runs)


def row(*cells):
    print("| " + " | ".join(cells) + " |")


def shown(values, digits=0):
    if not values:
        return "–"
    if min(values) == max(values):
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def ratio(values, others):
    return f"{mean(values) / mean(others):.2f}" if values and others else "–"


def path_table(runs):
    """Who asks, in the order of the requests."""
    clients = ("first client, 4 hops", "second client there", "client two hops down")
    row("", "end-to-end", "ph-thcp", "ratio", "first byte, s: end-to-end", "ph-thcp", "from")
    row("---", *["--:"] * 5, "---")
    for at, client in enumerate(clients):
        of = {scheme: [run["transfers"][at] for _, run in runs if run["scheme"] == scheme] for scheme in SCHEMES}
        plain, hops = of["end-to-end"], of["ph-thcp"]
        rates = [[it["kbps"] for it in some] for some in (plain, hops)]
        row(client, shown(rates[0]), shown(rates[1]), ratio(rates[1], rates[0]),
            *(shown([it["ttfb_s"] for it in some], 3) for some in (plain, hops)),
            ", ".join(sorted({it["source"] for it in hops})))


def chains_table(runs):
    """One connection end to end (thcp) beside one for each hop (ph-thcp)."""
    cells = {}
    for name, run in runs:
        head, _seed = name.rsplit(".", 1)
        head, scheme = head.rsplit(".", 1)
        loss, hops = head.rsplit(".", 1)
        cells.setdefault((float(loss), int(hops)), {}).setdefault(scheme, []).append(run["transfers"][0])
    row("loss of a link", "hops", "thcp", "ph-thcp", "ratio", "first byte, s: thcp", "ph-thcp")
    row(*["--:"] * 7)
    for (loss, hops), of in sorted(cells.items()):
        both = of.get("thcp", []), of.get("ph-thcp", [])
        rates = [[it["kbps"] for it in some] for some in both]
        row(f"{loss:.0%}", str(hops), *map(shown, rates), ratio(rates[1], rates[0]),
            *(shown([it["ttfb_s"] for it in some], 3) for some in both))


def emulab8_table(runs):
    """A seed's median or mean is one value. By hops: transfers that were no local hits, too."""
    of = {scheme: [run for _, run in runs if run["scheme"] == scheme] for scheme in SCHEMES}
    hops = sorted({it["hops"] for _, run in runs for it in run["transfers"]})
    row("scheme", "gateway into the air, MB", "ratio to default", "from origin, MB", "packets a file", "mean (AAT)", "median",
        *(f"median, {n} hop{'s' * (n > 1)}" for n in hops), *(f"the same, no {'/'.join(KINDS[:2])}, {n}" for n in hops),
        *(f"{kind}, %" for kind in KINDS))
    row("---", *["--:"] * (6 + 2 * len(hops) + len(KINDS)))
    air = {scheme: [run["gateway"]["bytes_over_air"] / 1e6 for run in some] for scheme, some in of.items()}
    for scheme, some in of.items():
        rates = [[it["kbps"] for it in run["transfers"]] for run in some]
        row(scheme, shown(air[scheme], 2), ratio(air[scheme], air["default"]),
            shown([run["gateway"]["bytes_from_origin"] / 1e6 for run in some], 2),
            shown([run["radio"]["packets_per_file"] for run in some]),
            shown([mean(it) for it in rates]), shown([median(it) for it in rates]),
            *(shown(by_hops(some, n, True)) for n in hops), *(shown(by_hops(some, n, False)) for n in hops),
            *(shown([100 * run["share_by_source"].get(kind, 0) for run in some]) for kind in KINDS))


def ditto_table(runs):
    """Medians over a run's leaves, one value a seed, and where the bytes of ditto's leaves came from."""
    sources = ("overheard", "repaired", *KINDS)
    row("testbed", "end-to-end, median", "ph-thcp", "ditto", "ditto / end-to-end", "ditto / ph-thcp",
        *(f"{source}, %" for source in sources))
    row("---", *["--:"] * (5 + len(sources)))
    for testbed in sorted({name.split(".")[0] for name, _ in runs}):
        of = {}
        for name, run in runs:
            if name.startswith(testbed + "."):
                of.setdefault(run["scheme"], []).append(run)
        plain, path, ditto = ([median(it["kbps"] for it in run["transfers"]) for run in of.get(scheme, [])]
                              for scheme in ("end-to-end", "ph-thcp", "ditto"))
        heard = [it["bytes_by_source"] for run in of.get("ditto", []) for it in run["transfers"]]
        total = sum(sum(it.values()) for it in heard) or 1
        row(testbed, shown(plain), shown(path), shown(ditto), ratio(ditto, plain), ratio(ditto, path),
            *(f"{100 * sum(it.get(source, 0) for it in heard) / total:.0f}" for source in sources))


def heard_table(folder):
    """Observers of all transfers of a seed together, one value a seed; chunks as shares of those that were sent."""
    row("testbed", "transfers", "reassembly", "anything, %", "over half, %", "best fifth, % of chunks", "unused, % of payload, 60 % of hearers below")
    row("---", "---", "---", *["--:"] * 4)
    of = {}
    for path in sorted(folder.glob("*.json")):
        testbed, scheme, seed, receiver = path.stem.split(".")
        for how in ("whole", "heads", "alone"):
            observers = json.loads(path.with_suffix("." + how).read_text())["observers"]
            made = {pathlib.Path(it["file"]).stem: it for it in observers}
            sent = made.pop(receiver)["chunks_reconstructed"]
            seen = [(min(1, it["chunks_reconstructed"] / sent), it["unused_share"], it["payload_bytes"]) for it in made.values()]
            of.setdefault((testbed, scheme, how), {}).setdefault(seed, []).extend(seen)
    kinds = {"whole": "ours", "heads": "by heads heard", "alone": "each stream alone"}
    for (testbed, scheme, how), seeds in sorted(of.items()):
        seeds = seeds.values()
        shares = [[it[0] for it in seen] for seen in seeds]
        unused = [sorted(it[1] for it in seen if it[2] > 0) for seen in seeds]
        row(testbed, "hop by hop" if scheme == "ph-thcp" else "one connection", kinds[how],
            shown([100 * mean(it > 0 for it in some) for some in shares], 1),
            shown([100 * mean(it > 0.5 for it in some) for some in shares], 1),
            shown([100 * sorted(some)[len(some) * 4 // 5] for some in shares], 1),
            shown([100 * some[len(some) * 3 // 5] for some in unused if some], 1))


def by_hops(runs, hops, with_local):
    """Each run's median over clients so many hops away."""
    rates = [[it["kbps"] for it in run["transfers"]
              if it["hops"] == hops and (with_local or it["source"] not in KINDS[:2])] for run in runs]
    return [median(it) for it in rates if it]


main()
