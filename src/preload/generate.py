#!/usr/bin/env python3
"""Writes the wrappers of one MPI (OUT.hpp, OUT.inc), or the stubs of the front library for several:
generate.py SEMANTICS INCLUDE_DIR COMPILER OUT
generate.py --stubs SEMANTICS COMPILER OUT.S INCLUDE_DIR...

Prototypes come from the installed mpi.h, what they mean from semantics.txt. A prototype that is not
in the table, a rule's argument that is no parameter, and a name twice in the table stop the build.
"""

import re
import subprocess
import sys
from pathlib import Path

WRAPPED = {"call", "moves", "recv", "post", "irecv", "persist", "precv", "collective", "creates",
           "hand"}
CLASSES = WRAPPED | {"skip"}
ROW = re.compile(r"(?P<names>[\w ]+?)\s*:\s*(?P<kind>\w+)\s*"
                 r"(?:(?P<rule>\w+)\((?P<arguments>[^)]*)\)|\[(?P<result>[\w|]+)\])?")


GENERATED = "// Generated from mpi.h and semantics.txt."


class Meaning:
    def __init__(self, kind, rule, arguments, result):
        self.kind, self.rule, self.arguments, self.result = kind, rule, arguments, result


def read_semantics(path):
    table = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        row = ROW.fullmatch(line)
        if row is None or row["kind"] not in CLASSES:
            sys.exit(f"{path}:{number}: not 'NAMES : CLASS RULE(ARGUMENTS)'")
        arguments = [word.strip() for word in (row["arguments"] or "").split(",") if word.strip()]
        for name in row["names"].split():
            if name in table:
                sys.exit(f"{path}:{number}: MPI_{name} is in the table twice")
            table[name] = Meaning(row["kind"], row["rule"], arguments, row["result"])
    return table


class Prototype:
    """int MPI_<name>(<parameters>), each parameter as (declaration, name, is array)."""

    def __init__(self, name, result, text):
        self.name, self.result = name, result
        self.parameters = []
        for part in text.split(","):
            part = " ".join(part.split())
            if part in ("void", ""):
                continue
            found = re.fullmatch(r"(.*?)(\w+)\s*((?:\[\w*\])*)", part)
            self.parameters.append((part, found[2] if found and part != "..." else "...",
                                    (found[1].strip() if found else "")))

    def has(self, name):
        return any(parameter == name for _, parameter, _ in self.parameters)

    def type_of(self, name):
        return next(kind for _, parameter, kind in self.parameters if parameter == name)

    def first_of(self, kind):
        return next((n for _, n, k in self.parameters if k == kind), None)


def read_prototypes(include, compiler):
    ran = subprocess.run([compiler, "-E", "-P", "-x", "c", "-I", include, "-"],
                         input="#include <mpi.h>\n", capture_output=True, text=True)
    if ran.returncode != 0:
        sys.exit(f"{include}/mpi.h cannot be read:\n{ran.stderr}")
    text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", ran.stdout)
    prototypes = {}
    for found in re.finditer(r"\b(int|double|[A-Z]\w+)\s+MPI_(\w+)\s*\(([^;{}]*?)\)\s*;", text):
        prototypes[found[2]] = Prototype(found[2], found[1], found[3])
    return prototypes


def meaning_of(table, name):
    """The row that covers a routine, and how: (row, '' | 'i' | 'init')."""
    base = name[:-2] if name.endswith("_c") else name
    if base in table:
        return table[base], ""
    if base.startswith("I") and base[1:2].islower():
        row = table.get(base[1:2].upper() + base[2:])
        if row and row.kind == "collective":
            return row, "i"
    if base.endswith("_init") and (row := table.get(base[:-5])) and row.kind == "collective":
        return row, "init"
    return None, ""


def covered(table, prototypes, origin):
    """Routines to wrap with their meaning; stops at one that nobody has thought about."""
    chosen, missing = {}, []
    for name, prototype in sorted(prototypes.items()):
        if name.startswith("T_"):
            continue
        row, form = meaning_of(table, name)
        if row is None:
            missing.append(f"MPI_{name}")
        elif row.kind != "skip":
            chosen[name] = (prototype, row, form)
    if missing:
        sys.exit(f"{origin}/mpi.h has {', '.join(missing)}: say in semantics.txt what that means")
    return chosen


def pick(prototype, word):
    for name in word.split("|"):
        if prototype.has(name):
            return name
    sys.exit(f"semantics.txt gives MPI_{prototype.name} the argument {word}, but it has "
             + ", ".join(name for _, name, _ in prototype.parameters))


def is_scalar(prototype, name):
    declaration = next(d for d, n, _ in prototype.parameters if n == name)
    return "[" not in declaration and "*" not in declaration


class Wrapper:
    def __init__(self, prototype, row, form):
        self.prototype, self.row = prototype, row
        self.kind = row.kind
        if form == "i":
            self.kind = "post"
        elif form == "init":
            self.kind = "persist"
        self.numbered = row.kind == "collective" and form in ("", "i")
        self.arguments = [pick(prototype, word) for word in row.arguments]

    def text(self):
        """The wrapper; for calls that their scalars determine, a short way before it."""
        p = self.prototype
        declared = ", ".join(d for d, _, _ in p.parameters) or "void"
        given = [n for _, n, _ in p.parameters]
        words = self.words()
        name = f"wrap_{p.name}" if words is None else f"first_{p.name}"
        body = [f"int {name}({declared}) {{",
                "  Call call(t_active);",
                f"  if (!call) return next.{p.name}({', '.join(given)});"]
        seen = given
        if self.kind == "recv":
            body.append("  SeenStatus seen(status);")
            seen = ["seen.get()" if n == "status" else n for n in given]
        body += [f"  const int outcome = next.{p.name}({', '.join(seen)});", "  call.stop();",
                 *self.record(), "  return outcome;", "}"]
        if words is None:
            return "\n".join(body)
        compared = ", ".join(["memo", *words])
        short = [f"int wrap_{p.name}({declared}) {{",
                 "  Thread* const thread = t_active;",
                 f"  if (thread == nullptr) [[unlikely]] return first_{p.name}({', '.join(given)});",
                 f"  const Memo& memo = thread->memos[kRoutine_{p.name}];",
                 f"  if (!is_same({compared})) [[unlikely]] return first_{p.name}({', '.join(given)});",
                 "  Repeat call(thread, memo);",
                 f"  const int outcome = next.{p.name}({', '.join(given)});",
                 f"  call.finish(kRoutine_{p.name}, outcome);"]
        if self.kind in ("post", "irecv"):
            short.append(f"  call.posted(outcome, request, {self.comes()});")
        return "\n".join(["[[gnu::noinline]] " + body[0], *body[1:], *short, "  return outcome;", "}"])

    def comes(self):
        return "true" if self.kind in ("irecv", "precv") else "false"

    def words(self):
        """The arguments that determine a call, or None."""
        _, handle = self.place()
        if self.kind == "call":
            return handle
        if self.kind not in ("moves", "collective", "post", "irecv") or not handle \
                or len(self.arguments) > 4:
            return None
        scalar = all(is_scalar(self.prototype, name) for name in self.arguments)
        return [*self.arguments, *handle] if scalar else None

    def place(self):
        """Where the call happens, and the handle that says so."""
        for kind, where in (("MPI_Comm", "InComm"), ("MPI_Win", "InWindow")):
            if name := self.prototype.first_of(kind):
                return f"{where}{{{name}}}", [name]
        return "Nowhere{}", []

    def record(self):
        p = self.prototype
        where, handle = self.place()
        routine = f"kRoutine_{p.name}"
        if self.kind == "call":
            return [self.memoized(routine, where, "kNoVolume", handle)]
        if self.kind == "creates":
            made = pick(p, self.row.result)
            return [f"  call.created(outcome, {made});",
                    f"  call.finish({routine}, outcome, {where}, kNoVolume, false);"]
        words = self.words()
        volume = (f"[&](const Place& place) {{ return volume::{self.row.rule}("
                  f"{', '.join(['place', *self.arguments])}); }}")
        if self.kind == "recv":
            return [f"  call.finish_recv({routine}, outcome, {where}, {volume}, seen.get());"]
        if self.kind in ("persist", "precv"):
            return [f"  call.persist({routine}, outcome, {where}, {volume}, {self.comes()}, request);"]
        if words is not None:
            record = self.memoized(routine, where, volume, words)
        else:
            numbered = "true" if self.numbered else "false"
            record = f"  call.finish({routine}, outcome, {where}, {volume}, {numbered});"
        if self.kind in ("post", "irecv"):
            return [record.replace("call.", "Slot* const slot = call.", 1),
                    f"  call.posted(outcome, request, slot, {self.comes()});"]
        return [record]

    def memoized(self, routine, where, volume, words):
        numbered = "true" if self.numbered else "false"
        return f"  call.finish_memo({', '.join([routine, 'outcome', where, volume, numbered, *words])});"


def write_wrappers(semantics, include, compiler, out):
    chosen = covered(read_semantics(semantics), read_prototypes(include, compiler), include)
    lines = [GENERATED, "// NOLINTBEGIN(readability-identifier-naming)", "enum Routine : std::uint16_t {"]
    lines += [f"  kRoutine_{name} = {number}," for number, name in enumerate(chosen, 1)]
    lines += [f"  kRoutines = {len(chosen) + 1}", "};", "struct Next {"]
    lines += [f"  decltype(&MPI_{name}) {name};" for name in chosen]
    lines += ["};", "inline constexpr const char* kNames[] = {\"\","]
    lines += [f'  "MPI_{name}",' for name in chosen]
    lines += ["};", "// NOLINTEND(readability-identifier-naming)"]
    Path(out + ".hpp").write_text("#pragma once\n#include <mpi.h>\n#include <cstdint>\n"
                                  "namespace sinew::preload {\n" + "\n".join(lines)
                                  + "\n}  // namespace sinew::preload\n", encoding="utf-8")
    large = [f"#define MPI_{name[:-2]} MPI_{name}" for name in chosen if name.endswith("_c")]
    Path(out).with_name("large_counts.hpp").write_text(
        "\n".join(["#pragma once", GENERATED, *large]) + "\n", encoding="utf-8")
    body = [GENERATED, "// NOLINTBEGIN"]
    body += [Wrapper(*what).text() for what in chosen.values() if what[1].kind != "hand"]
    entries = [f'  {{"PMPI_{name}", reinterpret_cast<void*>(&wrap_{name}), '
               f"reinterpret_cast<void**>(&next.{name})}}," for name in chosen]
    body += ["\n".join(["const Wrapped kEntries[] = {", *entries, "};"]), "// NOLINTEND"]
    Path(out + ".inc").write_text("\n\n".join(body) + "\n", encoding="utf-8")


STUB = """.globl {name}
.type {name}, @function
{name}:
  jmp *sinew_slots+{offset}(%rip)
.size {name}, .-{name}
"""


def write_stubs(semantics, compiler, out, includes):
    names = set()
    for include in includes:
        names |= covered(read_semantics(semantics), read_prototypes(include, compiler),
                         include).keys()
    # Open MPI's Fortran bindings call PMPI_ names, MPICH's call MPI_ names: with both, every binding
    # comes through the same wrappers. A call inside a call is not counted.
    names = sorted(prefix + name for name in names for prefix in ("MPI_", "PMPI_"))
    text = [GENERATED.replace("//", "#"), ".text"]
    text += [STUB.format(name=name, offset=8 * i) for i, name in enumerate(names)]
    for i in range(len(names)):
        text.append(f"first_{i}:\n  push ${i}\n  jmp sinew_first_call")
    text += [".section .rodata", ".globl sinew_names", ".hidden sinew_names", "sinew_names:"]
    text += [f'  .asciz "{name}"' for name in names] + ["  .byte 0"]
    text += [".data", ".balign 8", ".globl sinew_slots", ".hidden sinew_slots", "sinew_slots:"]
    text += [f"  .quad first_{i}" for i in range(len(names))]
    text += ['.section .note.GNU-stack,"",@progbits']
    Path(out).write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 4 and sys.argv[1] == "--stubs":
        write_stubs(sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
    elif len(sys.argv) == 5:
        write_wrappers(*sys.argv[1:])
    else:
        sys.exit(__doc__)
