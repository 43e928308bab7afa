"""What the checks share: the compile commands of a build, and running a command for many files."""

import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def sources_of(compiled):
    """The file itself, or the files that it includes if it is one that CMake made of several."""
    if compiled.parent.name != "Unity":
        return [compiled]
    included = re.findall(r'^#include "(.+)"$', compiled.read_text(encoding="utf-8"), re.MULTILINE)
    return [(compiled.parent / name).resolve() for name in included]


def load_commands(build):
    """{source file: compiler and flags, without the source, its output and the precompiled header
    that would lend it includes}, from a build folder."""
    entries = json.loads((Path(build) / "compile_commands.json").read_text(encoding="utf-8"))
    commands = {}
    for entry in entries:
        words = shlex.split(entry["command"])
        output = words.index("-o")
        del words[output : output + 2]
        if "-include" in words:
            lent = words.index("-include")
            del words[lent : lent + 2]
        flags = [word for word in words if word not in ("-c", entry["file"])]
        for source in sources_of(Path(entry["directory"], entry["file"]).resolve()):
            commands[source] = flags
    return commands


def failures(commands):
    """Runs {name: argv} as many at a time as there are cores; yields (name, output) that failed."""
    def run(item):
        name, argv = item
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return name, done.returncode, done.stdout

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for name, status, output in pool.map(run, commands.items()):
            if status != 0:
                yield name, output
