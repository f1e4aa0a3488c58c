"""Checks that a Markdown report holds no number but those of its metrics.

Outside code spans a number is the recomputed value of the metric whose key follows it, as the catalogue prints it
("69.2 % [m3]"), or the number of a list item. Numbers inside code spans are names and words of the tools: they must
stand in the JSON form as well.
"""
import json
import re

from recompute_format import format_quantity

KEY = re.compile(r"\[(m\d+)\]")
CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
ITEM = re.compile(r"(\d+)\. ")


def check_markdown(text, recomputation, language):
    known = _known_numbers(recomputation)
    problems, item = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        where = f"Markdown line {number}"
        spans = [m.group(2) for m in CODE.finditer(line)]
        for span in spans:
            problems += [f"{where}: {n} in `{span[:80]}` is not in the JSON form"
                         for n in _unknown(span, known)]
        prose = CODE.sub(lambda m: "\x00" * len(m.group(0)), line)
        listed = ITEM.match(prose)
        if listed:
            item += 1
            if int(listed.group(1)) != item:
                problems.append(f"{where}: item {listed.group(1)} of a list where {item} is due")
            prose = prose[listed.end():]
        elif line.startswith("#"):
            item = 0
        problems += [f"{where}: {p}" for p in _check_prose(prose, recomputation, language)]
    return problems


def _check_prose(prose, recomputation, language):
    """Takes each number with its key away; what digits are left are nobody's."""
    rest, position = "", 0
    for match in KEY.finditer(prose):
        before = prose[position:match.start()]
        position = match.end()
        expected = _expected(match.group(1), recomputation, language)
        if expected is None:
            yield f"there is no metric {match.group(1)}, or it cannot be recomputed"
        elif before.endswith(" ") and before[:-1].endswith(expected):
            begin = before[:-1 - len(expected)]
            if not re.search(r"[\w.,\u202f\u2212+-]$", begin):
                before = begin
        if re.search(r"\d", before):
            yield f"{before.strip()[-40:]!r} stands before {match.group(1)}, which is {expected!r}"
        rest += before
    rest += prose[position:]
    if re.search(r"\d", prose[position:]):
        yield f"a number without a metric in {prose[position:].strip()[:80]!r}"


def _expected(key, recomputation, language):
    metric, value = recomputation.by_key.get(key), recomputation.values.get(key)
    if metric is None or value is None:
        return None
    entry = recomputation.catalogue.metrics[metric["id"]]
    return format_quantity(value, entry["unit"], bool(entry.get("si")), int(entry.get("decimals", 2)), language)


def _known_numbers(recomputation):
    catalogue = recomputation.catalogue
    text = json.dumps(recomputation.report, ensure_ascii=False)
    text += " ".join(f["expression"] for f in catalogue.formulas.values())
    text += " ".join(m["en"] + " " + m["fr"] for m in catalogue.metrics.values())
    return set(re.findall(r"\d+", text)) | {"0"}  # zeros are left out of the JSON form


def _unknown(span, known):
    """Numbers of a code span that the JSON form lacks; a cut name may cut a number."""
    for match in re.finditer(r"\d+", span):
        number, before, after = match.group(0), span[:match.start()], span[match.end():]
        if number in known or (before.endswith("~") and not after):
            continue
        if (after.startswith("…") or before.endswith("…")) and any(
                k.startswith(number) or k.endswith(number) for k in known):
            continue
        yield number
