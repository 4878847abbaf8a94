#!/usr/bin/env python3
"""check_prefixes.py ROOT: names of functions and types in headers begin with their folder's prefix.

docs/GLOSSARY.md has the table "Symbol prefixes": folder, prefix. Each prefix belongs to one row, and each function and
type that a header of a listed folder declares begins with one of its prefixes. aot_, the contract's own, and names of
Fortran routines may occur everywhere; static functions are not checked.
"""
import glob
import os
import re
import sys

root = sys.argv[1]
page = open(os.path.join(root, "docs/GLOSSARY.md"), encoding="utf-8").read()
section = page.split("## Symbol prefixes", 1)[1]
rows = re.findall(r"^\| (`[^|]*) \| ([^|]*) \|$", section, re.M)
if len(rows) < 15:
    sys.exit(f"docs/GLOSSARY.md: only {len(rows)} rows under 'Symbol prefixes'")
failed, owner, prefixes_of = 0, {}, {}
for folders, cells in rows:
    names = re.findall(r"`([^`]+)/`", folders)
    groups = cells.split(";") if ";" in cells else [cells] * len(names)
    if len(groups) != len(names):
        print(f"docs/GLOSSARY.md: {folders}: {len(names)} folders and {len(groups)} prefixes")
        failed = 1
    for name, group in zip(names, groups):
        prefixes_of[name] = [p.lower() for p in re.findall(r"`([A-Za-z0-9]+_)`", group)]
        user = name if ";" in cells else folders  # a cell without ';' is shared by the folders of its row
        for p in set(prefixes_of[name]):
            if owner.setdefault(p, user) != user:
                print(f"docs/GLOSSARY.md: prefix {p} is used by {owner[p]} and by {user}")
                failed = 1
DECLARED = re.compile(r"^(?!static|typedef|extern|#|return|else|AOT_STATIC)[a-z][\w ]*[ *]\**([a-z]\w*)\(", re.M)
TYPE = re.compile(r"^(?:\} |typedef (?:struct|union|enum) \w+ )([a-z]\w*_t);", re.M)
n = 0
for name, prefixes in prefixes_of.items():
    for header in sorted(glob.glob(os.path.join(root, name, "**", "*.h"), recursive=True)):
        if "/tests/" in header or name == "host" and "/include/" in header:
            continue
        text = re.sub(r"/\*.*?\*/", "", open(header, encoding="utf-8").read(), flags=re.S)
        for found in DECLARED.findall(text) + TYPE.findall(text):
            n += 1
            if found.endswith("_"):  # a Fortran routine
                continue
            if not found.lower().startswith(tuple(prefixes) + ("aot_",)):
                print(f"{os.path.relpath(header, root)}: {found} does not begin with {' or '.join(prefixes)}")
                failed = 1
if n < 500:
    sys.exit(f"only {n} declarations were found")
if not failed:
    print(f"prefixes: {n} declarations of {len(prefixes_of)} folders begin with theirs, each used once")
sys.exit(failed)
