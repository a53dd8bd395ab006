"""What the pages on mirrors (docs/mirrors) have their reader fetch, as small files under the same names."""

from content import noise, sha256
from images import INDEX, REGISTRY, protected
from languages import GO, MAVEN, NPM, PYPI, pypi_page


def examples(tree):
    pypi_page(tree, "six", "six-1.17.0-py2.py3-none-any.whl", "/packages/b7/ce/six.whl", sha256(b"six"))
    tree.file(NPM, "/left-pad/-/left-pad-1.3.0.tgz", noise("left-pad", 5_000))
    tree.file(GO, "/golang.org/x/text/@v/v0.3.0.mod", b"module golang.org/x/text\n")
    tree.file(MAVEN, "/maven2/junit/junit/4.13.2/junit-4.13.2.pom", b"<project/>", content_type="text/xml")
    index = b'{"schemaVersion": 2, "manifests": []}'
    tree.index(REGISTRY, "/v2/library/alpine/manifests/latest", index, **protected(INDEX, index))
