#!/usr/bin/env python3
"""Makes opticks.txt from the copy of Newton's Opticks in Debian's package golang-1.19-src.

    apt-get download golang-1.19-src && dpkg -x golang-1.19-src_*.deb go
    python make_opticks.py go/usr/share/go-1.19/src/testdata/Isaac.Newton-Opticks.txt opticks.txt
"""

import re
import sys

ASCII = {"æ": "ae", "Æ": "Ae", "ê": "e", "û": "u", "´": "'", "×": "x", "·": ".", "§": "Sect."}


def clean(text: str) -> str:
    """The book alone, as plain ASCII: no transcriber's notes, no pictures, no marks of italics."""
    text = text[text.index("OPTICKS:") :]
    text = re.sub(r"Transcriber's Note:.*?\n\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\[Illustration[^\]]*\]", "", text)
    text = re.sub(r"\[Greek:\s*([^\]]*)\]", r"\1", text)
    text = re.sub(r"^[ *]*\*[ *]*$", "", text, flags=re.MULTILINE)
    text = text.replace("_", "").translate(str.maketrans(ASCII))
    text = re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        text = clean(file.read())
    with open(sys.argv[2], "wb") as file:
        file.write(text.encode("ascii"))


if __name__ == "__main__":
    main()
