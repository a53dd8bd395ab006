"""Generates pairs of versions of the kinds that `scripts/setup corpora` fetches: FOLDER [--scale N] [--seed N].

Each pair becomes FOLDER/NAME with the files `old`, `new` and `about`, as there. The same seed and scale give the same
bytes. At scale 1 all pairs together are about 9 MB. They stand in where corpora are missing: how much is
saved depends on how they were generated, so their figures have no goals.
"""

import argparse
import bisect
import hashlib
import io
import itertools
import pathlib
import random
import struct
import tarfile

MIB = 1 << 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="sizes are multiplied by this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=list(KINDS))
    given = parser.parse_args()
    for name in given.only:
        pair = given.folder / name
        pair.mkdir(parents=True, exist_ok=True)
        old, new = KINDS[name](random.Random(f"{name} {given.seed}"), given.scale)
        write(pair / "old", old)
        write(pair / "new", new)
        (pair / "about").write_text(f"{name}\ngenerated, scale {given.scale:g}, seed {given.seed}\n")


def write(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    path.mkdir(exist_ok=True)
    for name, page in content.items():
        (path / name).write_bytes(page)


class Words:
    """Draws words as often as a language does: the n-th of a vocabulary with a weight of 1 / n."""

    def __init__(self, random, count=6000):
        syllables = [a + b for a in "bcdfghjklmnprstvw" for b in ("a", "e", "i", "o", "u", "er", "in", "or", "st")]
        self.random = random
        self.vocabulary = ["".join(random.choices(syllables, k=1 + min(3, n // 40))) for n in range(1, count + 1)]
        self.sums = list(itertools.accumulate(1 / n for n in range(1, count + 1)))

    def take(self, count):
        return [self.vocabulary[bisect.bisect(self.sums, self.random.random() * self.sums[-1])] for _ in range(count)]

    def sentence(self):
        return " ".join(self.take(self.random.randint(5, 18))).capitalize() + "."


# A tree of source files. Every header of the archive differs, as the files of a release have its date.


def tree(random, scale):
    words = Words(random)
    old = {}
    for n in range(int(160 * scale)):
        path = "/".join(["tree", *words.take(random.randint(1, 3)), f"{words.take(1)[0]}_{n}.c"])
        old[path] = [function(words) for _ in range(max(2, int(random.lognormvariate(2.4, 0.9))))]
    new = {path: list(functions) for path, functions in old.items()}
    paths = sorted(new)
    for path in random.sample(paths, len(paths) // 12 + 1):
        edit(new[path], words, random)
    for path in random.sample(paths, len(paths) // 80 + 1):
        new[path.replace(".c", "_more.c")] = [function(words) for _ in range(8)]
    return archive(old, 1_700_000_000), archive(new, 1_702_000_000)


def function(words):
    random = words.random
    kind, pointer, number = words.take(3)
    lines = [f"static int {'_'.join(words.take(2))}(struct {kind} *{pointer}, int {number})", "{"]
    for _ in range(random.randint(4, 22)):
        lines.append(statement(words))
    return lines + ["\treturn 0;", "}", ""]


def statement(words):
    a, b, c = words.take(3)
    return words.random.choice((
        f"\tif ({a}->{b} < {c})\n\t\treturn -EINVAL;",
        f"\t{a}->{b} = {c}({a}, {words.random.randrange(64)});",
        f"\tfor (i = 0; i < {a}->{b}; i++)\n\t\t{c}(&{a}->{b}[i]);",
        f"\t/* {' '.join(words.take(7))} */",
        f"\tlist_del(&{a}->{c});"))


def edit(functions, words, random):
    """Changes some lines of some functions, adds one and removes one."""
    for lines in random.sample(functions, len(functions) // 5 + 1):
        lines = functions[functions.index(lines)] = list(lines)
        for _ in range(random.randint(1, 3)):
            lines[random.randrange(2, len(lines) - 2)] = statement(words)
    if random.random() < 0.5:
        functions.insert(random.randrange(len(functions)), function(words))
    elif len(functions) > 3:
        del functions[random.randrange(len(functions))]


def archive(files, time):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(files):
            content = "\n".join(line for lines in files[path] for line in lines).encode()
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(content), time
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


# A program. Some functions grow, so all addresses behind them move: in calls, in tables and in relocations.


def binary(random, scale):
    templates = [random.randbytes(random.randint(2, 7)) for _ in range(400)]
    sums = list(itertools.accumulate(1 / n for n in range(1, len(templates) + 1)))
    count = int(5000 * scale)
    pick = lambda: templates[bisect.bisect(sums, random.random() * sums[-1])]

    def body():
        return [instruction() for _ in range(max(4, int(random.lognormvariate(3.2, 0.8))))]

    def instruction():
        """A call, as the number of a function, or bytes."""
        if random.random() < 0.12:
            return random.randrange(count)
        return pick() + bytes([random.randrange(256)]) * (random.random() < 0.3)

    old = [body() for _ in range(count)]
    new = list(old)
    for n in random.sample(range(count), count // 100 + 1):
        at = random.randrange(len(new[n]))
        new[n] = new[n][:at] + [pick() for _ in range(random.randint(1, 6))] + new[n][at + 1:]
    strings = "\0".join(Words(random).take(count * 4)).encode()
    return program(old, strings), program(new, strings + b"one string more\0")


def program(functions, strings):
    starts, at = [], 0x1000
    for body in functions:
        starts.append(at)
        at += -(-sum(5 if isinstance(it, int) else len(it) for it in body) // 16) * 16
    code = bytearray()
    for start, body in zip(starts, functions):
        for it in body:
            if isinstance(it, int):
                code += b"\xe8" + struct.pack("<i", starts[it] - (0x1000 + len(code) + 5))
            else:
                code += it
        code += b"\xcc" * (-len(code) % 16)
    data = 0x1000 + len(code) + len(strings)
    table = b"".join(struct.pack("<Q", start) for start in starts[::3])
    moves = b"".join(struct.pack("<QQQ", data + 8 * n, 8, start) for n, start in enumerate(starts[::3]))
    return b"\x7fELF" + bytes(0xFFC) + bytes(code) + strings + table + moves


# A manual, and its pages one by one: some paragraphs are edited, and every page has the version in its foot.


def manual(random, scale):
    old, new = both(random, int(110 * scale))
    return archived(old, 1_700_000_000), archived(new, 1_702_000_000)


def pages(random, scale):
    return both(random, int(90 * scale))


def both(random, count):
    words = Words(random)
    old, new = {}, {}
    titles = [" ".join(words.take(3)).title() for _ in range(count)]
    for n, title in enumerate(titles):
        paragraphs = [paragraph(words) for _ in range(max(3, int(random.lognormvariate(3.3, 0.6))))]
        name = f"page-{n:04}.html"
        old[name] = page(titles, n, paragraphs, "15.18")
        if random.random() < 0.1:
            paragraphs[random.randrange(len(paragraphs))] = paragraph(words)
            paragraphs.insert(random.randrange(len(paragraphs)), paragraph(words))
        new[name] = page(titles, n, paragraphs, "15.20")
    return old, new


def paragraph(words):
    text = " ".join(words.sentence() for _ in range(words.random.randint(2, 7)))
    link = words.take(1)[0]
    return f'<p>{text} See <a class="xref" href="{link}.html" title="{link.title()}">{link}</a>.</p>'


def page(titles, n, paragraphs, version):
    near = titles[max(0, n - 1)], titles[min(len(titles) - 1, n + 1)]
    head = (f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{titles[n]}</title>'
            '<link rel="stylesheet" href="manual.css"></head><body>')
    nav = (f'<div class="nav"><a href="page-{n - 1:04}.html">{near[0]}</a> <a href="index.html">Up</a> '
           f'<a href="page-{n + 1:04}.html">{near[1]}</a></div>')
    foot = f"<footer>The manual of version {version}</footer></body></html>\n"
    return "\n".join([head, nav, f"<h1>{titles[n]}</h1>", *paragraphs, nav, foot]).encode()


def archived(files, time):
    return archive({path: [content.decode().split("\n")] for path, content in files.items()}, time)


# A minified bundle. Rebuilt: some modules are edited, and numbers of modules move. Rewritten: identifiers are renamed in
# most modules, since minifiers name them in order, and many functions are new.


def js_rebuilt(random, scale):
    return bundles(random, int(350 * scale), edited=0.01, renamed=0.02)


def js_rewritten(random, scale):
    return bundles(random, int(350 * scale), edited=0.2, renamed=0.6)


def bundles(random, count, edited, renamed):
    words = Words(random)
    modules = [[js_function(words) for _ in range(random.randint(3, 14))] for _ in range(count)]
    old = bundle(modules, [0] * count, 0)
    shifts = [random.randint(1, 5) if random.random() < renamed else 0 for _ in range(count)]
    for module in modules:
        for n in range(len(module)):
            if random.random() < edited:
                module[n] = js_function(words)
    modules.insert(count // 3, [js_function(words)])
    shifts.insert(count // 3, 0)
    return old, bundle(modules, shifts, 1)


def js_function(words):
    """A function as parts: text, or the number of one of its local variables."""
    random = words.random
    parts = ["function ", random.randrange(4, 9), "(", 0, ",", 1, "){var ", 2, "=", 0, f".{words.take(1)[0]};"]
    for _ in range(random.randint(2, 12)):
        a, b, c = words.take(3)
        x, y, z = (random.randrange(9) for _ in range(3))
        parts += random.choice(([x, f".{a}=", y, f".{b}(", z, ");"],
                                ["if(", x, "&&null!=", y, f".{a})return ", z, f".{b};"],
                                [f'throw new Error("{a} {b} {c}");'],
                                ["for(var ", 3, "=0;", 3, "<", x, f".{a};", 3, "++)", y, f".{b}(", 3, ");"]))
    return parts + ["return ", random.randrange(9), "}"]


def bundle(modules, shifts, first):
    letters = "etnriaosclhdufpmgvybwxkj"
    out = ["/*! bundle */(()=>{var e={"]
    for number, (module, shift) in enumerate(zip(modules, shifts), first):
        out.append(f"{number}:(e,t,n)=>{{")
        for function in module:
            out.extend(letters[(part + shift) % len(letters)] if isinstance(part, int) else part for part in function)
        digest = hashlib.md5(str(module).encode()).hexdigest()
        out.append(f'n.d(t,{{h:"{digest[:8]}"}})}},')
    return "".join(out + ["}})();\n"]).encode()


# 1 MB of noise; the new one is equal in 90 % of its chunks of 64 bytes.


def blocks(random, scale):
    count = int(1_000_000 * scale) // 64
    old = random.randbytes(64 * count)
    new = bytearray(old)
    for n in random.sample(range(count), count // 10):
        new[64 * n:64 * n + 64] = random.randbytes(64)
    return old, bytes(new)


def noise(random, scale):
    """Two files of incompressible bytes that have nothing in common."""
    return random.randbytes(int(MIB * scale)), random.randbytes(int(MIB * scale))


KINDS = {"tree": tree, "binary": binary, "html": manual, "js-rebuilt": js_rebuilt, "js-rewritten": js_rewritten,
         "blocks": blocks, "noise": noise, "pages": pages}

if __name__ == "__main__":
    main()
