"""Plots of what was measured, as SVG, with gnuplot.  Without gnuplot there are none, and that is said."""
import shutil
import subprocess

from growth import CURVES
from table import OUT

# File, title, and which rows: those with this unit whose name begins so.
BARS = [
    ("rates", "Tasks per second", "tasks/s",
     ("bare limit, ", "bare batch rate, ", "end to end, ", "drain", "submit", "hot key", "handler")),
    ("latency-idle", "Latency to an idle host, ms", "ms", ("idle latency",)),
    ("latency-load", "Latency under load, ms", "ms", ("latency under load",)),
    ("cpu", "CPU per task, microseconds", "us/task", ("CPU of",)),
    ("peers", "Tasks per second, the same work on others", "tasks/s", ("Quiver beside", "peer")),
]
BAR_SCRIPT = """
set terminal svg size {width},{height} background rgb 'white' font 'sans,12'
set output '{out}'
set title '{title}' noenhanced
set style fill solid 0.7
set xrange [0:*]
set yrange [{rows}:-1]
set grid xtics
unset key
set lmargin {margin}
set format x '%.0s%c'
set ytics ({tics}) noenhanced
plot '-' using ($2*0.5):0:($2*0.5):(0.35) with boxxyerrorbars lc rgb '#336699'
{data}
e
"""
CURVE_SCRIPT = """
set terminal svg size 800,500 background rgb 'white' font 'sans,12'
set output '{out}'
set title '{title}' noenhanced
set logscale x
set xlabel '{x}' noenhanced
set ylabel '{y}' noenhanced
set format x '%.0s%c'
set format y '%.0s%c'
{scale}
set grid
set key outside bottom center horizontal noenhanced
set style data linespoints
plot {lines}
{data}
"""


def quoted(text):
    return text.replace("'", "’")


def gnuplot(name, script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    print(OUT / f"{name}.svg")


def draw_bars(table):
    for name, title, unit, starts in BARS:
        rows = [(f"{r.part}: {r.what}", r.value) for r in table.rows
                if r.unit == unit and not r.at and r.what.startswith(starts)]
        if rows:
            margin = max(len(text) for text, _ in rows)
            tics = ", ".join(f"'{quoted(text)}' {i}" for i, (text, _) in enumerate(rows))
            data = "\n".join(f"{i} {value}" for i, (_, value) in enumerate(rows))
            gnuplot(name, BAR_SCRIPT.format(width=450 + 8 * margin, height=90 + 28 * len(rows), margin=margin, title=title,
                                            out=OUT / f"{name}.svg", rows=len(rows), tics=tics, data=data))


def draw_curve(table, curve, unit, name):
    """A line for each thing that was measured, of both stores."""
    series = {}
    for row in table.rows:
        if row.at and row.part.endswith(f".{curve}") and row.unit == unit:
            series.setdefault(f"{row.part.split('.')[0]}: {row.what}", []).append((row.at[0], row.value))
            x = row.at[1]
    if not series:
        return
    values = [value for points in series.values() for _, value in points]
    scale = "set logscale y" if max(values) > 100 * min(values) > 0 else "set yrange [0:*]"
    lines = ", ".join(f"'-' title '{quoted(title)}' lw 2 pt 7 ps 0.6" for title in series)
    data = "\n".join("\n".join(f"{at} {value}" for at, value in points) + "\ne" for points in series.values())
    gnuplot(name, CURVE_SCRIPT.format(out=OUT / f"{name}.svg", title=f"{unit}, by {curve}", x=x, y=unit, scale=scale,
                                      lines=lines, data=data))


def draw(table):
    """Those of another run go: a plot belongs to the table beside it."""
    for old in OUT.glob("*.svg"):
        old.unlink()
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot is not installed")
        return
    draw_bars(table)
    for curve in (*CURVES, "batch"):
        draw_curve(table, curve, "tasks/s", f"growth-{curve}")
    draw_curve(table, "payload", "MB/s", "growth-payload-bytes")
