"""The times of schedules: as python3-croniter computes them, as a search through all minutes finds them, and as an independent
reader of the zones does; over twenty years, in the system's zones and in zones of the tests' own."""
import datetime
import functools
import json
import os
import subprocess
import time
import zoneinfo

import pytest

import zones

LONG = bool(os.environ.get("QUIVER_TEST_LONG"))
UTC = datetime.timezone.utc
FIRST, LAST = 1262304000, 1262304000 + 20 * 365 * 86400  # from 2010 on

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo",
         "Africa/Casablanca", "Asia/Tehran", "Antarctica/Troll", "Europe/Dublin"]
PATTERNS = ["30 2 * * *", "0,30 2,3 * * *", "0 0 * * *", "59 23 31 * *", "0 12 13 * fri", "15 1 29 2 *", "45 1-3 1-7 mar,oct,nov sun"]
ELAPSED = ["*/15 * * * *", "5 */2 * * *", "* 2 * * sun"]
RARE = ["*/30 */4 * * *", "5 */6 * * *", "* 2 * * sun", "*/20 1-3 */2 * mon-fri"]  # of these there are not too many in twenty years
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()

def values(text, least, most, words=()):
    found = set()
    for part in text.split(","):
        part, _, step = part.partition("/")
        ends = [least + words.index(w) if w in words else int(w) for w in part.split("-")] if part != "*" else [least, most]
        found |= set(range(ends[0], ends[-1] + 1, int(step or 1)))
    return found


class Pattern:
    """Cron by definition: every minute is looked at."""

    def __init__(self, text):
        minute, hour, day, month, weekday = text.split()
        self.minutes, self.hours = values(minute, 0, 59), values(hour, 0, 23)
        self.days, self.months = values(day, 1, 31), values(month, 1, 12, MONTHS)
        self.weekdays = {d % 7 for d in values(weekday, 0, 7, DAYS)}
        self.has_both = "*" not in (day[0], weekday[0])

    def has_day(self, day):
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (of_month or of_week if self.has_both else of_month and of_week)

    def has(self, local):
        return self.has_day(local.date()) and local.hour in self.hours and local.minute in self.minutes


def local_at(zone, second):
    return datetime.datetime.fromtimestamp(second, UTC).astimezone(zone).replace(tzinfo=None)


def moment(zone, local):
    """When the clocks show it for the first time; if they skip it, when they do that."""
    second = int(local.replace(tzinfo=zone, fold=0).timestamp())
    if local_at(zone, second) == local:
        return second
    low, high = second - 2 * 86400, second + 2 * 86400
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if local_at(zone, middle) < local else (low, middle)
    return high


def fixed_times(pattern, zone, after, until):
    day, found = local_at(zone, after).date() - datetime.timedelta(2), set()
    while day <= local_at(zone, until).date():
        if pattern.has_day(day):
            found |= {moment(zone, datetime.datetime(day.year, day.month, day.day, hour, minute))
                      for hour in pattern.hours for minute in pattern.minutes}
        day += datetime.timedelta(1)
    return sorted(t for t in found if after < t <= until)


def elapsed_times(pattern, zone, after, until):
    return [t for t in range(after // 60 * 60 + 60, until + 1, 60) if pattern.has(local_at(zone, t))]


def changes(zone, first, last):
    """The hours in which the offset of the zone changes."""
    offsets = [(t, datetime.datetime.fromtimestamp(t, UTC).astimezone(zone).utcoffset()) for t in range(first, last, 3600)]
    return [b[0] for a, b in zip(offsets, offsets[1:]) if a[1] != b[1]]


def at_each_minute(pattern, zone, first, last):
    """Of every time between two changes of a zone of ours, each minute that the pattern has."""
    found = []
    minutes = [hour * 60 + minute for hour in sorted(pattern.hours) for minute in sorted(pattern.minutes)]
    for begin, end, offset in zones.segments(zone, first, last):
        for day in range((begin + offset) // 86400, (end + offset) // 86400 + 1):
            if pattern.has_day(datetime.date(1970, 1, 1) + datetime.timedelta(day)):
                found += [t for t in (day * 86400 + m * 60 - offset for m in minutes) if begin <= t < end and t > first]
    return found


@functools.lru_cache(maxsize=None)
def calendar_times(text, first, last):
    """Seconds by the clock on the wall, from croniter, which knows of no zone here."""
    croniter = pytest.importorskip("croniter")
    every = croniter.croniter(text, datetime.datetime.fromtimestamp(first, UTC).replace(tzinfo=None), ret_type=float)
    found = []
    while not found or found[-1] <= last:
        found.append(int(every.get_next()))
    return found


def random_field(chance, least, most):
    """A list of numbers, ranges and ranges with steps."""
    def part():
        low, high = sorted(chance.randint(least, most) for _ in range(2))
        kind = chance.randrange(4)
        if kind == 0 and high > low:
            return f"{low}-{high}/{chance.randint(1, most)}"
        return f"{low}-{high}" if kind == 1 else str(low)
    return ",".join(part() for _ in range(chance.choice([1, 1, 2, 3])))


def random_pattern(chance, is_fixed):
    """Minutes and hours are few, so that there are not too many times."""
    minute, hour = chance.randrange(60), chance.choice(["1,2", "0", "23", "1-3", str(chance.randrange(24))])
    if not is_fixed:
        minute, hour = chance.choice([f"*/{chance.randint(13, 40)}", str(minute)]), f"*/{chance.randint(3, 23)}"
    days = random_field(chance, 1, 28) if chance.random() < 0.6 else "*"
    months = random_field(chance, 1, 12) if chance.random() < 0.5 else "*"
    # Never all of them: croniter takes 0-6 for a star, and so needs the day of the month, too; cron does not.
    weekdays = random_field(chance, 1, 5) if chance.random() < 0.4 else "*"
    return f"{minute} {hour} {days} {months} {weekdays}"


@pytest.fixture(scope="module")
def own_zones(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zones")
    (folder / "Test").mkdir()
    for zone in zones.ZONES.values():
        (folder / "Test" / zone.name).write_bytes(zones.tzif(zone))
    return folder


@pytest.fixture(scope="module")
def told(quiver, own_zones):
    """The times that the command tells, in seconds, up to `until`."""
    def ask(pattern, zone, after, until):
        found = []
        environment = {**os.environ, "TZDIR": str(own_zones)} if zone.startswith("Test/") else None
        while not found or found[-1] <= until:
            begin = datetime.datetime.fromtimestamp(found[-1] if found else after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            done = subprocess.run([quiver, "schedule", "next", "--cron", pattern, "--zone", zone, "--handler", "x", "--json",
                                   "-n", "1000", "--from", begin], capture_output=True, text=True, timeout=60, env=environment)
            assert done.returncode == 0, done.stderr
            more = [t // 1000 for t in json.loads(done.stdout)]
            if not more:
                break
            found += more
        return [t for t in found if t <= until]

    return ask


@pytest.mark.parametrize("name", ZONES)
def test_fixed_times_over_twenty_years_are_those_of_the_calendar(told, name):
    zone, first, last = zoneinfo.ZoneInfo(name), FIRST, LAST
    for text in PATTERNS[: None if LONG else 4]:
        assert told(text, name, first, last) == fixed_times(Pattern(text), zone, first, last), text


@pytest.mark.parametrize("name", ZONES)
def test_patterns_with_a_star_follow_elapsed_time_where_clocks_change(told, name):
    zone = zoneinfo.ZoneInfo(name)
    hours = changes(zone, 1577836800, 1577836800 + 3 * 365 * 86400) or [1600000000]
    for hour in hours if LONG else hours[:2]:
        for text in ELAPSED:
            assert told(text, name, hour - 14400, hour + 14400) == elapsed_times(Pattern(text), zone, hour - 14400, hour + 14400), text


def test_what_is_no_pattern_is_refused_by_its_field(quiver):
    for pattern, text in (("61 * * * *", "minute: 61"), ("0 0 31 2 *", "never occurs"), ("* * * *", "day of the week is missing"),
                          ("@often", "@often is unknown"), ("0 0 * * funday", "day of the week: funday")):
        done = subprocess.run([quiver, "schedule", "next", "--cron", pattern, "--handler", "x"], capture_output=True, text=True)
        assert done.returncode == 2 and text in done.stderr, done.stderr


@pytest.mark.parametrize("name", zones.ZONES)
def test_our_own_zones_are_what_their_files_say(own_zones, name, monkeypatch):
    """Another reader of such files and the rules they were made from agree, or nothing below proves anything.  Python's takes
    days that are counted from 0 as if it were from 1: there libc reads the footer, which is all that the file has."""
    zone = zones.ZONES[name]
    moments = {t + d for t, _ in zone.transitions[1:] for d in (-1, 0)} | set(range(FIRST, LAST, 86400 * 9))
    moments = sorted(t for t in moments if FIRST <= t <= LAST)
    if name == "Zero":
        monkeypatch.setenv("TZ", zone.footer)
        time.tzset()
        read = [time.localtime(t).tm_gmtoff for t in moments]
        monkeypatch.undo()
        time.tzset()
    else:
        with open(own_zones / "Test" / name, "rb") as file:
            info = zoneinfo.ZoneInfo.from_file(file)
        read = [datetime.datetime.fromtimestamp(t, UTC).astimezone(info).utcoffset().total_seconds() for t in moments]
    assert read == [zones.offset_at(zone, t) for t in moments]


@pytest.mark.parametrize("name", zones.ZONES)
def test_fixed_times_in_zones_of_our_own_are_those_of_croniter(told, name, chance):
    """What the clocks skip comes when they do, what they show twice comes the first time."""
    zone = zones.ZONES[name]
    for text in PATTERNS + [random_pattern(chance, True) for _ in range(20)] if LONG else PATTERNS[1:4:2]:
        moments = {zones.first_moment(zone, local) for local in calendar_times(text, FIRST - 86400 * 2, LAST + 86400 * 2)}
        assert told(text, f"Test/{name}", FIRST, LAST) == sorted(t for t in moments if FIRST < t <= LAST), text


@pytest.mark.parametrize("name", zones.ZONES)
def test_patterns_with_a_star_in_zones_of_our_own_are_found_in_every_minute(told, name, chance):
    zone = zones.ZONES[name]
    for text in RARE + [random_pattern(chance, False) for _ in range(5)] if LONG else RARE[:1]:
        last = LAST if LONG else FIRST + 3 * 365 * 86400
        assert told(text, f"Test/{name}", FIRST, last) == at_each_minute(Pattern(text), zone, FIRST, last), text


def test_patterns_with_a_star_are_those_of_croniter_where_no_clock_changes(told, chance):
    for text in RARE[:3] + [random_pattern(chance, False) for _ in range(20 if LONG else 2)]:
        last = LAST if LONG else FIRST + 2 * 365 * 86400
        assert told(text, "UTC", FIRST, last) == [t for t in calendar_times(text, FIRST, last) if t <= last], text


@pytest.mark.parametrize("pattern, years", [("0 0 */30 2 thu", (2091, 2103, 2114)), ("0 */23 */30 2 thu", (2091, 2103, 2114)),
                                           ("0 0 29 2 */7", (2032, 2060, 2088, 2128))])
def test_what_comes_once_in_decades_is_waited_for(told, pattern, years):
    """A day field with a star and a step is needed besides the other: 1 February is no Thursday from 2092 to 2102, and
    29 February no Sunday for up to 40 years."""
    day = 29 if "29" in pattern else 1
    times = [int(datetime.datetime(year, 2, day, hour, tzinfo=UTC).timestamp())
             for year in years for hour in ((0, 23) if "/23" in pattern else (0,))]
    assert told(pattern, "UTC", times[0], times[-1]) == times[1:]


def test_every_minute_of_an_hour_is_doubted(quiver, host):
    host.configure(work="").start()
    done = subprocess.run([host.quiver, "schedule", "set", "often", "--cron", "* 0 * * *", "--handler", "work", "-c", host.config],
                          capture_output=True, text=True)
    assert done.returncode == 0 and "it runs at every minute of these hours; for once an hour write 0 as the minute" in done.stderr
    done = subprocess.run([host.quiver, "schedule", "set", "once", "--cron", "0 0 * * *", "--handler", "work", "-c", host.config],
                          capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
