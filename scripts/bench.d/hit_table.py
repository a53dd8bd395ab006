"""Prints the runs of `scripts/bench hit` as a Markdown table: median and spread."""

import sys
from statistics import median

BYTES = {"1k": 1 << 10, "64k": 1 << 16, "1m": 1 << 20}


def main():
    runs = {}
    for line in open(sys.argv[1]):
        name, size, *numbers = line.split()
        runs.setdefault((size, name), []).append([float(n) for n in numbers])
    print("| size | proxy | requests/s, median (lowest-highest) | MB/s | p50 ms | p99 ms | |")
    print("|---|---|--:|--:|--:|--:|---|")
    for size in BYTES:
        for name in sys.argv[2:]:
            if rows := runs.get((size, name)):
                print(row(size, name, rows))


def row(size, name, rows):
    rates = [r[0] for r in rows]
    p50, p99 = (median(r[column] for r in rows) / 1000 for column in (1, 2))
    errors, misses = (int(sum(r[column] for r in rows)) for column in (3, 4))
    verdict = f"INVALID: {misses} misses, {errors} errors" if misses or errors else ""
    rate = f"{median(rates):,.0f} ({min(rates):,.0f}-{max(rates):,.0f})"
    megabytes = median(rates) * BYTES[size] / 1e6
    return f"| {size} | {name} | {rate} | {megabytes:,.0f} | {p50:.2f} | {p99:.2f} | {verdict} |"


main()
