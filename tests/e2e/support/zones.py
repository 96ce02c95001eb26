"""Time zones of the tests' own: where their clocks stand, computed here from a few rules, and the same as files that another
program reads (TZif, RFC 9636).

A zone is a list of (UTC second, offset from then on), the first one being -infinity, over FIRST_YEAR to LAST_YEAR.
"""
import bisect
import collections
import datetime
import struct

FIRST_YEAR, LAST_YEAR = 2009, 2041
HOUR = 3600
NEVER = -(1 << 62)

# listed: how many of the transitions stand in the file itself; the footer says the rest.
Zone = collections.namedtuple("Zone", "name transitions listed footer")


def day(year, month, number):
    return int(datetime.datetime(year, month, number, tzinfo=datetime.timezone.utc).timestamp())


def sunday(year, month, which):
    """Midnight, as if it were UTC, of the first, second, … Sunday of a month; -1: the last."""
    last = day(year + month // 12, month % 12 + 1, 1) - 86400
    first = day(year, month, 1)
    found = [t for t in range(first, last + 1, 86400) if (t // 86400 + 4) % 7 == 0]
    return found[which - 1 if which > 0 else which]


def julian(year, number):
    """Midnight of day 1 to 365 of a year whose 29 February is not counted."""
    at = day(year, 1, 1) + (number - 1) * 86400
    is_leap = day(year, 3, 1) - day(year, 2, 28) > 86400
    return at + (86400 if is_leap and number > 59 else 0)


def yearly(standard, summer, begin, end):
    """Transitions of a rule: begin(year) and end(year) are local times before the change."""
    found = []
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        found += [(begin(year) - standard, summer), (end(year) - summer, standard)]
    found.sort()
    before = standard if found[0][1] == summer else summer
    return [(NEVER, before), *found]


def with_break(year):
    """As where summer time rests for a month: four changes a year."""
    begin, end = sunday(year, 3, -1) + 2 * HOUR, sunday(year, 10, -1) + 3 * HOUR
    rests = day(year, 6, 2 + year % 5) + 3 * HOUR
    return [(begin, HOUR), (rests - HOUR, 0), (rests + 30 * 86400, HOUR), (end - HOUR, 0)]


def make_zones():
    every = range(FIRST_YEAR, LAST_YEAR + 1)
    paulo = yearly(-3 * HOUR, -2 * HOUR, lambda y: sunday(y, 10, 3), lambda y: sunday(y, 2, 3))
    zones = [
        Zone("Berlin", yearly(HOUR, 2 * HOUR, lambda y: sunday(y, 3, -1) + 2 * HOUR, lambda y: sunday(y, 10, -1) + 3 * HOUR), 0,
             "CET-1CEST,M3.5.0,M10.5.0/3"),
        Zone("York", yearly(-5 * HOUR, -4 * HOUR, lambda y: sunday(y, 3, 2) + 2 * HOUR, lambda y: sunday(y, 11, 1) + 2 * HOUR), 21,
             "EST5EDT,M3.2.0,M11.1.0"),
        Zone("Howe", yearly(37800, 39600, lambda y: sunday(y, 10, 1) + 2 * HOUR, lambda y: sunday(y, 4, 1) + 2 * HOUR), 10,
             "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0"),
        Zone("Kolkata", [(NEVER, 19800)], 0, "IST-5:30"),
        Zone("Apia", [(NEVER, -10 * HOUR), (day(2011, 12, 30) + 10 * HOUR, 14 * HOUR), (day(2021, 5, 1), 13 * HOUR)], 2, "<+13>-13"),
        Zone("Paulo", [t for t in paulo if t[0] < day(2019, 6, 1)], 999, "<-03>3"),
        Zone("Casa", [(NEVER, 0)] + [t for y in every for t in with_break(y)], 999, "<+00>0"),
        Zone("Tehran", yearly(12600, 16200, lambda y: julian(y, 80), lambda y: julian(y, 264)), 0, "<+0330>-3:30<+0430>,J80/0,J264/0"),
        Zone("Troll", yearly(0, 2 * HOUR, lambda y: sunday(y, 3, -1) + HOUR, lambda y: sunday(y, 10, -1) + 3 * HOUR), 0,
             "<+00>0<+02>-2,M3.5.0/1,M10.5.0/3"),
        Zone("Dublin", yearly(HOUR, 0, lambda y: sunday(y, 10, -1) + 2 * HOUR, lambda y: sunday(y, 3, -1) + HOUR), 0,
             "IST-1GMT0,M10.5.0,M3.5.0/1"),
        Zone("Nuuk", yearly(-2 * HOUR, -HOUR, lambda y: sunday(y, 3, -1) - HOUR, lambda y: sunday(y, 10, -1)), 0,
             "<-02>2<-01>,M3.5.0/-1,M10.5.0/0"),
        Zone("Zero", yearly(-3 * HOUR, -2 * HOUR, lambda y: day(y, 1, 1) + 59 * 86400 + 26 * HOUR, lambda y: day(y, 1, 1) + 300 * 86400),
             0, "AAA3BBB,59/26,300/0"),
    ]
    return {zone.name: zone for zone in zones}


ZONES = make_zones()


def tzif(zone):
    """The bytes of its file: version 3, and nothing in the block of version 1."""
    listed = [t for t in zone.transitions[1:]][:zone.listed]
    offsets = sorted({offset for _, offset in [zone.transitions[0], *listed]}, key=lambda o: o != zone.transitions[0][1])
    names = "XXX\0"

    def header(times, types, chars):
        return b"TZif3" + bytes(15) + struct.pack(">6I", 0, 0, 0, times, types, chars)

    return header(0, 1, 4) + struct.pack(">iBB", 0, 0, 0) + names.encode() + header(len(listed), len(offsets), 4) + \
        b"".join(struct.pack(">q", at) for at, _ in listed) + bytes(offsets.index(offset) for _, offset in listed) + \
        b"".join(struct.pack(">iBB", offset, 0, 0) for offset in offsets) + names.encode() + f"\n{zone.footer}\n".encode()


def offset_at(zone, second):
    return zone.transitions[bisect.bisect_right(zone.transitions, (second, 1 << 62)) - 1][1]


def segments(zone, first, last):
    """(from, until, offset) between two changes, cut to that time."""
    ends = [at for at, _ in zone.transitions[1:]] + [1 << 62]
    for (begin, offset), end in zip(zone.transitions, ends):
        if end > first and begin <= last:
            yield max(begin, first), min(end, last + 1), offset


def first_moment(zone, local):
    """When the clocks show it, or more, for the first time."""
    return next(max(begin, local - offset) for begin, end, offset in segments(zone, local - 3 * 86400, local + 3 * 86400)
                if local - offset < end)
