"""Fetches the pairs of versions that benchmarks transfer: FOLDER [NAME...]. To be run by `scripts/setup corpora`.

Each pair becomes FOLDER/NAME with the files `old`, `new` and `about` (its kind, and which versions they are); pages
are folders of files. A pair that is there already is left as it is, so that figures stay comparable. Packages
come from apt, pip and npm as they are configured on this machine. Debian keeps only its latest versions, so two of
those that apt knows are taken; versions from PyPI and npm are fixed.
"""

import calendar
import functools
import io
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

# Parts of a kernel's source, about 155 MB of 1.3 GB: the whole would take zstd -19 most of an hour.
KERNEL = {"fs", "include", "kernel", "mm", "net", "lib", "crypto", "block", "security", "ipc", "init", "io_uring", "virt"}
PAGES_MAX = 1200


def main():
    folder = pathlib.Path(sys.argv[1])
    names = sys.argv[2:] or list(PAIRS)
    if unknown := [name for name in names if name not in PAIRS]:
        sys.exit(f"corpora: unknown: {', '.join(unknown)}; there are {', '.join(PAIRS)}")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [name for name in names if not fetch_pair(folder, name)]
    print(f"corpora: {shown(sum(size(folder / name) for name in names))} in {folder}")
    if missing:
        sys.exit(f"corpora: not to be had: {', '.join(missing)}")


def fetch_pair(folder, name):
    """Makes FOLDER/NAME; it appears only once it is whole."""
    kind, source, *arguments = PAIRS[name]
    pair = folder / name
    if not (pair / "about").exists():
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as work:
            made = pathlib.Path(work) / "pair"
            made.mkdir()
            try:
                versions = source(made, pathlib.Path(work), *arguments)
            except (Unavailable, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
                print(f"corpora: {name}: {error}", file=sys.stderr)
                return False
            (made / "about").write_text(f"{kind}\n{versions}\n")
            shutil.rmtree(pair, ignore_errors=True)
            made.rename(pair)
    versions = (pair / "about").read_text().splitlines()[1]
    print(f"corpora: {name:<18} {shown(size(pair / 'old')):>9} {shown(size(pair / 'new')):>9}  {versions}")
    return True


class Unavailable(Exception):
    """A package, or its second version, that this machine's registries do not have."""


def size(path):
    if path.is_dir():
        return sum(it.stat().st_size for it in path.rglob("*") if it.is_file())
    return path.stat().st_size if path.exists() else 0


def shown(count):
    return f"{count / 1e6:.1f} MB"


def run(command, cwd):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["it failed"]
        raise Unavailable(f"{' '.join(command)}: {said[-1]}")
    return done.stdout


def only(paths, what):
    paths = list(paths)
    if len(paths) != 1:
        raise Unavailable(f"{what}: {len(paths)} files instead of one")
    return paths[0]


# Debian


def debian(made, work, package, unpack):
    """Two versions of a Debian package, each unpacked by `unpack(member archive, file)`."""
    versions = debian_versions(package, work)
    for age, version in zip(("old", "new"), versions):
        into = work / age
        into.mkdir()
        run(["apt-get", "-o", "APT::Sandbox::User=root", "download", "-qq", f"{package}={version}"], into)
        deb = only(into.glob("*.deb"), package)
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as content:
            with tarfile.open(fileobj=content.stdout, mode="r|") as members:
                unpack(members, made / age)
            # Whatever was not needed of it.
            while content.stdout.read(1 << 20):
                pass
        deb.unlink()
    return f"{package} {versions[0]} and {versions[1]} (Debian)"


def debian_versions(package, work):
    """The newest version, and the newest of an earlier release of the program, or else of the package."""
    known = [line.split("|")[1].strip() for line in run(["apt-cache", "madison", package], work).splitlines() if "|" in line]
    known = list(dict.fromkeys(known))
    if len(known) < 2:
        raise Unavailable(f"apt knows {len(known)} versions of {package}; two are needed")
    release = lambda version: version.rsplit("-", 1)[0]
    earlier = [it for it in known[1:] if release(it) != release(known[0])] or known[1:]
    return earlier[0], known[0]


def kernel(members, file):
    """Its source is a compressed archive in the package. Order and times of its files are kept: every header differs."""
    for member in members:
        if member.name.endswith(".tar.xz"):
            with tarfile.open(fileobj=members.extractfile(member), mode="r|xz") as source:
                with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as tree:
                    for it in source:
                        path = it.name.split("/")
                        if len(path) > 2 and path[1] in KERNEL:
                            tree.addfile(it, source.extractfile(it) if it.isreg() else None)
            return
    raise Unavailable("the package has no .tar.xz in it")


def java_source(members, file):
    for member in members:
        if member.name.endswith("/src.zip"):
            with tempfile.TemporaryFile() as archive:
                shutil.copyfileobj(members.extractfile(member), archive)
                zip_to_tar(archive, file)
            return
    raise Unavailable("the package has no src.zip in it")


def html(members, keep=lambda member: True):
    """(path, bytes) of the HTML files, in the order of their paths."""
    files = [(it.name, members.extractfile(it).read()) for it in members
             if it.isreg() and it.name.endswith(".html") and keep(it)]
    if not files:
        raise Unavailable("the package has no HTML files in it")
    return sorted(files)


def manual(members, file):
    """All its HTML files as one archive."""
    with tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in html(members):
            add(archive, path, content)


def pages(members, folder, size_max=1 << 30):
    """Some of its HTML files up to a size, spread evenly, each a file of its own."""
    folder.mkdir()
    files = html(members, lambda it: it.size <= size_max)
    # By name and not by rank, so that both versions have the same ones.
    step = -(-len(files) // PAGES_MAX)
    for path, content in files:
        if sum(path.encode()) % step == 0:
            (folder / path.strip("./").replace("/", "+")).write_bytes(content)


# PyPI


def wheel(made, work, project, *versions):
    """The files of two wheels, each as one archive in the order of their paths."""
    for age, version in zip(("old", "new"), versions):
        run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64",
             f"--dest={work / age}", f"{project}=={version}"], work)
        with open(only((work / age).glob("*.whl"), project), "rb") as archive:
            zip_to_tar(archive, made / age)
    return f"{project} {versions[0]} and {versions[1]} (PyPI, x86-64)"


def zip_to_tar(source, file):
    with zipfile.ZipFile(source) as archive, tarfile.open(file, "w", format=tarfile.GNU_FORMAT) as tree:
        for it in sorted(archive.infolist(), key=lambda it: it.filename):
            if not it.is_dir():
                add(tree, it.filename, archive.read(it), calendar.timegm((*it.date_time, 0, 0, 0)))


def add(archive, path, content, time=0):
    member = tarfile.TarInfo(path)
    member.size, member.mtime = len(content), time
    archive.addfile(member, io.BytesIO(content))


# npm


def bundle(made, work, package, path, *versions):
    """One file of two versions of an npm package."""
    for age, version in zip(("old", "new"), versions):
        into = work / age
        into.mkdir()
        run(["npm", "pack", "--silent", f"{package}@{version}"], into)
        with tarfile.open(only(into.glob("*.tgz"), package)) as archive:
            with archive.extractfile(f"package/{path}") as content:
                (made / age).write_bytes(content.read())
    return f"{package} {versions[0]} and {versions[1]}, {path} (npm)"


# Their mean is 14 KB, as without a limit in PostgreSQL's manual.
small_pages = functools.partial(pages, size_max=16 * 1024)

# Name of a pair: its kind, how it is fetched, and what. The first of a kind stands beside the goals; the other
# shows that nothing was tuned to the first.
PAIRS = {
    "kernel": ("tree", debian, "linux-source-6.1", kernel),
    "java-source": ("tree", debian, "openjdk-17-source", java_source),
    "scipy": ("wheel", wheel, "scipy", "1.14.0", "1.14.1"),
    "pandas": ("wheel", wheel, "pandas", "2.2.2", "2.2.3"),
    "postgresql-manual": ("html", debian, "postgresql-doc-15", manual),
    "python-manual": ("html", debian, "python3.11-doc", manual),
    "antd": ("js-rebuilt", bundle, "antd", "dist/antd.js", "6.6.7", "6.6.8"),
    "echarts-rebuilt": ("js-rebuilt", bundle, "echarts", "dist/echarts.min.js", "5.5.1", "5.6.0"),
    "echarts-rewritten": ("js-rewritten", bundle, "echarts", "dist/echarts.min.js", "5.6.0", "6.0.0"),
    "plotly": ("js-rewritten", bundle, "plotly.js-dist-min", "plotly.min.js", "3.7.0", "4.0.0"),
    "postgresql-pages": ("pages", debian, "postgresql-doc-15", pages),
    "kernel-pages": ("pages", debian, "linux-doc-6.1", small_pages),
}

main()
