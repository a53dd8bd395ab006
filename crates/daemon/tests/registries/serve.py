#!/usr/bin/env python3
"""Serves registries of packages under their real names, by TLS with a CA of its own: see README.md."""

import argparse
import json
import sys
import threading
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))

import archives
import certificates
import examples
import faults
import images
import languages
from content import Tree
from server import Log, Server

BUILDERS = [archives.debian, archives.openwrt, archives.alpine, images.oci]
BUILDERS += [languages.pypi, languages.npm, languages.cargo, languages.go, languages.maven, examples.examples]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="for content.json and hosts")
    parser.add_argument("--ca", type=Path, required=True, help="for the CA: clients trust its ca.pem")
    parser.add_argument("--listen", required=True, metavar="ADDRESS:PORT", help="for TLS")
    parser.add_argument("--plain", metavar="ADDRESS:PORT", help="the same without TLS")
    parser.add_argument("--log", type=Path, required=True, help="gets a line of JSON for each response")
    parser.add_argument("--bare", action="append", default=[], metavar="HOST", help="no validators, no lifetimes")
    parser.add_argument("--stale", action="store_true", help="what may change is stale after a second")
    parser.add_argument("--delay", type=float, default=0.0, metavar="SECONDS", help="before each response")
    return parser.parse_args()


def main():
    options = arguments()
    tree = Tree()
    for build in BUILDERS:
        build(tree)
    broken = faults.faults(tree)
    if options.stale:
        for entry in tree.entries.values():
            if "immutable" not in entry.headers.get("Cache-Control", "immutable"):
                entry.headers["Cache-Control"] = "max-age=1"
    options.dir.mkdir(parents=True, exist_ok=True)
    hosts = sorted({*tree.hosts(), *faults.HOSTS})
    (options.dir / "hosts").write_text("\n".join(hosts) + "\n")
    (options.dir / "content.json").write_text(json.dumps(tree.wanted, indent=1, sort_keys=True) + "\n")
    server = Server(tree, broken, Log(options.log), options.bare, options.delay)
    port = server.listen(options.listen, certificates.contexts(options.ca.resolve(), hosts))
    if options.plain:
        server.listen(options.plain)
    print(json.dumps({"ready": True, "port": port, "ca": str(options.ca / "ca.pem")}), flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
