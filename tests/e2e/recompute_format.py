"""Reading and printing quantities: FormatQuantity and the units of common/units.h, written a second time."""
import re

THOUSANDS_FRENCH = "\u202f"

TIME = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)]
DECIMAL = [("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)]
WITHOUT_PREFIX = ("%", "1", "Cel")

# annotation: (en, en plural, fr, fr plural)
WORDS = {
    "kernel": ("kernel", "kernels", "noyau", "noyaux"),
    "step": ("step", "steps", "pas", "pas"),
    "call": ("call", "calls", "appel", "appels"),
    "copy": ("copy", "copies", "copie", "copies"),
    "operation": ("operation", "operations", "opération", "opérations"),
    "sample": ("sample", "samples", "échantillon", "échantillons"),
    "token": ("token", "tokens", "token", "tokens"),
    "parameter": ("parameter", "parameters", "paramètre", "paramètres"),
    "register": ("register", "registers", "registre", "registres"),
    "cycle": ("cycle", "cycles", "cycle", "cycles"),
    "event": ("event", "events", "événement", "événements"),
    "row": ("row", "rows", "ligne", "lignes"),
}
SYMBOLS = {"By": ("B", "o"), "By/s": ("B/s", "o/s"), "{FLOP}": ("FLOP", "FLOP"), "{FLOP}/s": ("FLOP/s", "FLOP/s"),
           "{FLOP}/By": ("FLOP/B", "FLOP/o"), "Cel": ("°C", "°C")}


def format_quantity(value, unit, si, decimals, language="en"):
    french = language == "fr"
    scales = [("", 1.0)]
    if si and unit not in WITHOUT_PREFIX:
        scales = TIME if unit == "ns" else DECIMAL
    chosen = 0
    for i, (_, scale) in enumerate(scales):
        if abs(value) / scale >= 1:
            chosen = i
    if chosen + 1 < len(scales) and float(f"{abs(value) / scales[chosen][1]:.{decimals}f}") >= 1000:
        chosen += 1
    prefix, scale = scales[chosen]
    digits = f"{value / scale:,.{decimals}f}"
    if digits.startswith("-") and not re.search(r"[1-9]", digits):
        digits = digits[1:]
    printed = abs(float(digits.replace(",", "")))
    if french:
        digits = digits.replace(",", THOUSANDS_FRENCH).replace(".", ",")
    return digits + _unit(unit, prefix, printed, french)


def _unit(unit, prefix, printed, french):
    if unit == "1":
        return ""
    if unit == "ns":
        return " " + (prefix or "ns")
    if unit in SYMBOLS:
        return " " + prefix + SYMBOLS[unit][french]
    annotation = re.match(r"\{(\w+)\}(.*)", unit)
    if not annotation:
        return " " + prefix + unit
    word, rest = annotation.groups()
    en, en_plural, fr, fr_plural = WORDS.get(word, (word, word + "s", word, word + "s"))
    singular = printed < 2 if french else printed == 1
    name = (fr if singular else fr_plural) if french else (en if singular else en_plural)
    return " " + (prefix + " " if prefix else "") + name + rest


# --- printed units -----------------------------------------------------------

_TIME = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "µs": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9,
         "second": 1e9, "min": 60e9}
_BYTES = {"byte": 1.0, "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12}
_BYTES_SHORT = {"B": 1.0, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
                "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_HERTZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9}
_OTHER = {"mW": 1e-3, "W": 1.0, "kW": 1e3, "C": 1.0, "°C": 1.0, "%": 1.0, "": 1.0}


def unit_scale(printed):
    """Base units in one printed unit; a unit that is no multiple of a base unit is kept: 1."""
    if printed in _TIME:
        return _TIME[printed]
    if printed.lower() in _HERTZ:
        return _HERTZ[printed.lower()]
    if printed in ("cycle/second", "cycle/nsecond"):
        return 1.0 if printed == "cycle/second" else 1e9
    amount, slash, per = printed.partition("/")
    size = _BYTES.get(amount.lower(), _BYTES_SHORT.get(amount))
    if size is not None and not slash:
        return size
    if size is not None and per in _TIME:
        return size * (1e9 / _TIME[per])
    return _OTHER.get(printed, 1.0)


def printed_number(text):
    """1,205.00 of a tool; None where it printed no value."""
    text = text.strip()
    if not re.fullmatch(r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?([eE][-+]?\d+)?", text):
        return None
    return float(text.replace(",", ""))


# --- what a client writes ----------------------------------------------------

_POWERS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}


def client_quantity(text):
    """24ms, 68.72 GFLOP, 68,72 GFLOP, 7B, 32 in base units."""
    match = re.fullmatch(r"\s*([\d.,]+)\s*([^\d\s]\S*)?.*", text, re.DOTALL)
    if not match:
        raise ValueError(f"no quantity: {text!r}")
    number, unit = match.group(1).strip(".,"), match.group(2) or ""
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", number):
        number = number.replace(",", "")
    value = float(number.replace(",", "."))
    if unit in _TIME:
        return value * _TIME[unit]
    flop = re.match(r"([kMGTPE]?)FLOP", unit)
    if flop:
        return value * _POWERS[flop.group(1)]
    return value * _POWERS.get(unit, 1.0)
