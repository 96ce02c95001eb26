"""Plots of what was measured, as SVG, with gnuplot.  Without gnuplot there are none, and that is said."""
import shutil
import subprocess

from rig import OUT

# File, title, and which rows: those with this unit whose name begins so.
PLOTS = [
    ("rates", "Tasks per second, end to end", "tasks/s", ("bare", "end to end", "drain", "hot key")),
    ("latency", "Idle latency, ms", "ms", ("idle latency",)),
    ("cpu", "CPU per task, microseconds", "us/task", ("CPU of",)),
    ("peers", "Tasks per second, the same work on others", "tasks/s", ("Quiver", "peer")),
]
SCRIPT = """
set terminal svg size 900,{height} background rgb 'white' font 'sans,12'
set output '{out}'
set title '{title}' noenhanced
set style fill solid 0.7
set xrange [0:*]
set yrange [{rows}:-1]
set grid xtics
unset key
set lmargin 48
set ytics ({tics}) noenhanced
plot '-' using ($2*0.5):0:($2*0.5):(0.35) with boxxyerrorbars lc rgb '#336699'
{data}
e
"""


def draw(table):
    if not shutil.which("gnuplot"):
        print("no plots: gnuplot is not installed")
        return
    for name, title, unit, starts in PLOTS:
        rows = [(f"{r[0]}: {r[1]}", float(r[2])) for r in table.rows if r[3] == unit and r[1].startswith(starts)]
        if not rows:
            continue
        tics = ", ".join(f"'{text[:60]}' {i}" for i, (text, _) in enumerate(rows))
        data = "\n".join(f"{i} {value}" for i, (_, value) in enumerate(rows))
        script = SCRIPT.format(height=90 + 28 * len(rows), out=OUT / f"{name}.svg", title=title, rows=len(rows), tics=tics,
                               data=data)
        subprocess.run(["gnuplot"], input=script, text=True, check=True)
        print(f"{OUT / f'{name}.svg'}")
