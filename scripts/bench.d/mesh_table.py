"""Prints the runs of one part of `scripts/bench mesh` as a Markdown table."""

import json
import pathlib
import sys
from statistics import mean, median

SCHEMES = ("end-to-end", "default", "thcp", "ph-thcp")
KINDS = ("local", "ph-local", "remote", "gateway", "origin")


def main():
    part, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    runs = [(path.stem, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
    {"path": path_table, "chains": chains_table, "emulab8": emulab8_table}[part](runs)


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
    """The clients, in the order of the requests."""
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
    """Each seed gives one value, its median or mean. Figures by hops are given without local hits too."""
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


def by_hops(runs, hops, with_local):
    """Each run's median over clients that are this many hops away."""
    rates = [[it["kbps"] for it in run["transfers"]
              if it["hops"] == hops and (with_local or it["source"] not in KINDS[:2])] for run in runs]
    return [median(it) for it in rates if it]


main()
