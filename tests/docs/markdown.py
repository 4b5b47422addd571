"""The code of a page in Markdown, in its order: fenced blocks, and spans of text."""
import dataclasses
import re
import textwrap


@dataclasses.dataclass
class Code:
    line: int           # where it begins
    text: str
    is_block: bool


@dataclasses.dataclass
class Command:
    line: int
    text: str           # as a shell takes it, its comment with it


def codes(page):
    """All of a page's text; a fence that is not closed is an error."""
    found, start, lines = [], None, page.split("\n")
    prose = []
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            if start is None:
                found += spans(prose)
                prose, start = [], number
            else:
                found.append(Code(start + 1, textwrap.dedent("\n".join(lines[start:number - 1])), True))
                start = None
        elif start is None:
            prose.append((number, line))
    if start is not None:
        raise ValueError(f"line {start}: a block that does not end")
    return found + spans(prose)


def spans(prose):
    """Those of lines with their numbers. A span may go on in the next line, but in no other paragraph."""
    text = "\n".join(line for _, line in prose)
    return [Code(prose[text.count("\n", 0, match.start())][0], " ".join(match[1].split()), False)
            for match in re.finditer(r"`([^`]+)`", text) if "\n\n" not in match[1]]


def commands(block):
    """A block's lines, with what continues them: after a backslash, an open quote or a here-document."""
    lines, at, found = block.text.split("\n"), 0, []
    while at < len(lines):
        start, end = at, until(lines, at)
        text = "\n".join(lines[start:end])
        if text.strip() and not text.lstrip().startswith("#"):
            found.append(Command(block.line + start, text))
        at = end
    return found


def until(lines, at):
    """The line behind a command that begins at @at."""
    here = re.search(r"<<-?'?(\w+)'?", lines[at])
    if here:
        return at + lines[at:].index(here[1]) + 1
    end = at + 1
    while end < len(lines) and (lines[end - 1].endswith("\\") or goes_on("\n".join(lines[at:end]))):
        end += 1
    return end


def goes_on(text):
    """There is an open quote or parenthesis, or a pipe at its end."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"| #.*", "", text)
    return "'" in bare or '"' in bare or bare.count("(") > bare.count(")") or bare.rstrip().endswith("|")
