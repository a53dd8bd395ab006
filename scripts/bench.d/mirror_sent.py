"""What the registries of `mirror.sh` have sent, and whether a client got what it should."""

import json
import sys


def sent(log, begin):
    """Bytes of files, and of all responses, after the first `begin` lines of the log."""
    lines = [json.loads(line) for line in open(log).readlines()[int(begin) :]]
    files = sum(line["sent"] for line in lines if line["kind"] == "file")
    print(files, sum(line["sent"] for line in lines))


def got(content, client, printed):
    """Ends with an error if the printed digests are not those that the client must get."""
    pairs = dict(reversed(line.split()) for line in open(printed))
    sys.exit(pairs != json.load(open(content))[client])


{"sent": sent, "got": got}[sys.argv[1]](*sys.argv[2:])
