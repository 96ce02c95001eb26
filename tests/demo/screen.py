"""What the demo shows: one line that changes in place on a terminal, plain lines anywhere else."""
import shutil
import sys
import time


class Screen:
    def __init__(self, out=sys.stdout):
        self.out = out
        self.is_terminal = out.isatty()
        self.started = time.monotonic()
        self.said = 0.0  # share of the work, at the last plain line

    def line(self, text=""):
        print(text, file=self.out, flush=True)

    def progress(self, done, of, note):
        share = done / of if of else 1.0
        rate = done / max(time.monotonic() - self.started, 0.001)
        text = f"{done:>7} of {of} done  {rate:>6.0f} tasks/s  {note}"
        if self.is_terminal:
            width = shutil.get_terminal_size().columns
            room = max(min(30, width - len(text) - 4), 0)
            bar = ("█" * round(share * room)).ljust(room, "░")
            self.out.write(f"\r\033[K  {bar}{text}"[: width + 4])
            self.out.flush()
        elif share >= self.said + 0.25 or share == 1.0 > self.said:
            self.said = share
            self.line(f"  {text}")

    def end_progress(self):
        if self.is_terminal:
            self.out.write("\n")

    def table(self, head, rows):
        """The first column is text, the others numbers; the last is a verdict."""
        table = [head, *[[str(cell) for cell in row] for row in rows]]
        widths = [max(len(row[i]) for row in table) for i in range(len(head))]
        for number, row in enumerate(table):
            cells = [cell.ljust(w) if i in (0, len(head) - 1) else cell.rjust(w)
                     for i, (cell, w) in enumerate(zip(row, widths))]
            self.line("  " + "   ".join(cells).rstrip())
            if number == 0:
                self.line("  " + "─" * (sum(widths) + 3 * len(widths) - 3))

    def verdict(self, is_good, text):
        if self.is_terminal:
            text = f"\033[{32 if is_good else 31};1m{text}\033[0m"
        self.line(f"  {text}")
