"""The one table: printed as it grows, and kept as TSV."""
import os
import platform

import bars
from processes import BUILD

OUT = BUILD / "bench"


class Row:
    """A figure.  `at` is where on a curve it stands, as (number, unit); `bar` names one of bars.BARS."""

    def __init__(self, part, what, value, unit, at, bar, how):
        self.part, self.what, self.value, self.unit, self.at, self.bar, self.how = part, what, value, unit, at, bar, how

    def name(self):
        return self.what + (f", {self.said_at()}" if self.at else "")

    def said_at(self):
        return f"{self.at[0]:,} {self.at[1]}".replace(",", " ") if self.at else ""

    def said_bar(self):
        return bars.said(bars.BARS[self.bar]) if self.bar else ""

    def verdict(self):
        if not self.bar:
            return ""
        return "ok" if bars.met(bars.BARS[self.bar], self.value) else "MISSED"


class Table:
    def __init__(self, part="", is_kept=False):
        self.rows, self.failures = [], []
        self.part, self.is_kept = part, is_kept

    def add(self, what, value, unit, *, at=None, bar=None, how=""):
        row = Row(self.part, what, float(value), unit, at, bar, how)
        self.rows.append(row)
        shown = f"{row.value:,.0f}" if abs(row.value) >= 100 else f"{row.value:.3g}"
        print(f"{row.part:16} {row.name():54} {shown:>10} {unit:8} {row.said_bar():8} {row.verdict():6} {how}", flush=True)
        if self.is_kept:
            self.save()

    def note(self, text):
        print(f"{self.part:16}   {text}", flush=True)

    def fail(self, why):
        self.failures.append((self.part, why))
        print(f"{self.part:16} FAILED: {why}", flush=True)

    def save(self):
        """Everything so far: a run that is cut short has left what it found."""
        write("bench.tsv", ("part", "what", "at", "value", "unit", "bar", "verdict", "how"),
              [(r.part, r.what, r.said_at(), f"{r.value:.6g}", r.unit, r.said_bar(), r.verdict(), r.how) for r in self.rows])

    def summarize(self, is_whole):
        """The bars, each with its worst figure.  Of a run that was not whole, only those that it is about."""
        lines = bars.summary(self.rows)
        write("bars.tsv", ("what", "bar", "value", "unit", "verdict", "where"), lines)
        print(f"\n{'bar':68} {'':>10} {'figure':>10} {'':8} verdict")
        for what, bar, value, unit, verdict, where in lines:
            if is_whole or value != "-":
                print(f"{what:68} {bar:>10} {value:>10} {unit:8} {verdict:12} {where}")
        print(f"\n{OUT / 'bench.tsv'}\n{OUT / 'bars.tsv'}")


def write(name, titles, lines):
    OUT.mkdir(parents=True, exist_ok=True)
    new = OUT / f".{name}.new"
    new.write_text("".join("\t".join(line) + "\n" for line in (titles, *lines)))
    new.rename(OUT / name)


def machine():
    cpus = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    load = open("/proc/loadavg").read().split()[0]
    name = cpus[0] if cpus else platform.machine()
    return f"{os.cpu_count()} cores ({name}), Linux {platform.release()}, load {load} at the start"


def share(values, part):
    """The value below which that part of them is."""
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]
