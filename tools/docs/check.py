"""Checks the pages: fences come in pairs, a page has one first-level heading and no row outside a table, every relative
link leads to a file and a heading, every page is in docs/SUMMARY.md, and every option that a shell block gives to
`narrows` is in that command's help.

    python3 tools/docs/check.py [NARROWS]
    python3 tools/docs/check.py --site FOLDER

Without the command NARROWS, options are not checked. With --site, only the links of the pages in that folder are.
"""

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "python/README.md", ROOT / "experiments/README.md"]
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
MARK = re.compile(r"^\s*```(\w*)")
HEAD = re.compile(r"^\s*\|[-:| ]+\|$")
LINK = re.compile(r"\]\(([^)\s]+)\)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]+)")
COMMAND = re.compile(r"(?:^|(?<=[$;|&] )|(?<=-- )|(?<=sudo ))narrows ")
SEPARATOR = re.compile(r"(?:^|\s)(?:--|\||&&|;|&)(?:\s|$)")


@cache
def anchors(page):
    """The anchors of a page's headings, as GitHub and mdBook make them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", FENCE.sub("", page.read_text(encoding="utf-8")), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = sum(1 for known in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", known))
        found.add(slug if number == 0 else f"{slug}-{number}")
    return found


def broken_links(page):
    """The links of a page that lead to no file, or to no heading of one."""
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name.replace("index.html", "README.md") if name else page
        if not target.exists():
            yield f"no file {link}"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.resolve()):
            yield f"no heading {link}"


def broken_structure(page):
    """Faults of a page's blocks: a fence without its end, or opened twice; headings of the first level; rows without a
    table's head."""
    opened = None
    titles = 0
    in_table = False
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if fence := MARK.match(line):
            if opened is None:
                opened = number
            elif fence[1]:
                yield f"line {number}: a fence begins within that of line {opened}"
                opened = number
            else:
                opened = None
            continue
        if opened is not None:
            continue
        titles += line.startswith("# ")
        if not line.lstrip().startswith("|"):
            in_table = False
        elif not in_table:
            in_table = True
            if not HEAD.match("".join(lines[number : number + 1])):
                yield f"line {number}: a row without a table's head"
    if opened is not None:
        yield f"line {opened}: a fence without an end"
    if titles != 1 and page.name != "SUMMARY.md":
        yield f"{titles} headings of the first level"


@cache
def help_of(narrows, words):
    """The help of a subcommand, or None if there is none of this name."""
    done = subprocess.run([narrows, *words, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def unknown_options(page, narrows):
    """Options in a page's shell blocks that the help of their command does not have."""
    for language, block in FENCE.findall(page.read_text(encoding="utf-8")):
        if language not in ("sh", "console"):
            continue
        for line in block.replace("\\\n", " ").splitlines():
            for call in COMMAND.split(re.sub(r"(^|\s)#.*", "", line))[1:]:
                words = SEPARATOR.split(call)[0].split()
                command = tuple(w for w in words[:2] if re.fullmatch(r"[a-z]+", w))
                text = help_of(narrows, command) or help_of(narrows, command[:1])
                if text is None:
                    yield f"no command: narrows {call}"
                    continue
                known = set(re.findall(r"--[a-z][a-z-]+", text))
                for option in OPTION.findall(" ".join(words)):
                    if option not in known:
                        yield f"no option {option}: narrows {call}"


def main():
    """Prints each fault as one line."""
    if sys.argv[1:2] == ["--site"]:
        pages = sorted(Path(sys.argv[2]).glob("*.md"))
        faults = [f"{page.name}: {fault}" for page in pages for fault in broken_links(page)]
        print("\n".join(faults) or f"{len(pages)} pages of the site: links are right")
        return 1 if faults or not pages else 0
    narrows = sys.argv[1] if len(sys.argv) > 1 else None
    faults = []
    for page in PAGES:
        found = [*broken_structure(page), *broken_links(page)]
        if narrows:
            found += unknown_options(page, narrows)
        faults += [f"{page.relative_to(ROOT)}: {fault}" for fault in found]
    listed = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs/SUMMARY.md").read_text(encoding="utf-8")))
    for page in ROOT.glob("docs/*.md"):
        if page.name not in listed | {"SUMMARY.md"}:
            faults.append(f"{page.name} is not in docs/SUMMARY.md")
    # The site makes its first page of the top folder's README.
    faults = [fault for fault in faults if fault != "docs/SUMMARY.md: no file README.md"]
    print("\n".join(faults) or f"{len(PAGES)} pages: blocks{', links and options' if narrows else ' and links'} are right")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
