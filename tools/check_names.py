#!/usr/bin/env python3
"""Refuses two types of one name: check_names.py ROOT.

Two definitions of sinew::detail::Message in two headers compile and link, as long as no file
includes both; the linker then keeps one std::vector<Message> for both, and memory leaks or is
overwritten. So every type outside of unnamed namespaces has a name of its own in its namespace.
"""

import re
import sys
from collections import defaultdict
from pathlib import Path

OPENED = re.compile(r"(?:inline\s+)?namespace\s*([\w:]*)\s*\{")
CLOSED = re.compile(r"\}\s*//\s*(?:unnamed\s+)?namespace")
DEFINED = re.compile(r"(?:template\s*<.*>\s*)?(?:struct|class|union|enum(?:\s+class)?)\s+"
                     r"(?:alignas\([^{]*\)\s+)?(\w+)(?:\s+final)?\s*(?::[^:;{][^;{]*)?\{")
SUFFIXES = {".hpp", ".h", ".cpp", ".cu"}


def definitions(text):
    """(line number, qualified name) of the types defined at the level of a named namespace."""
    open_namespaces = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := OPENED.match(line):
            open_namespaces.append(found[1])
        elif CLOSED.match(line) and open_namespaces:
            open_namespaces.pop()
        elif (found := DEFINED.match(line)) and open_namespaces and "" not in open_namespaces:
            yield number, "::".join([*open_namespaces, found[1]])


def main():
    root = Path(sys.argv[1])
    places = defaultdict(list)
    for folder in ("include", "src", "bench"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and not path.name.endswith("-inl.hpp"):
                for number, name in definitions(path.read_text()):
                    places[name].append(f"{path.relative_to(root)}:{number}")
    twice = {name: where for name, where in places.items() if len(where) > 1}
    for name, where in sorted(twice.items()):
        print(f"{name} is defined twice: {' and '.join(where)}; rename one")
    return 1 if twice else 0


if __name__ == "__main__":
    sys.exit(main())
