"""sql on a real PostgreSQL, under a real host: judged by what psql finds in the tables afterwards."""
import json
import os
import random
import signal
import subprocess

import pytest

from hosts import Host, wait_until
from postgres import Postgres

FENCE = """is_deleted boolean NOT NULL DEFAULT false, fence_epoch bigint NOT NULL DEFAULT 0,
           fence_start bigint NOT NULL DEFAULT 0, fence_task text NOT NULL DEFAULT ''"""
DDL = f"""
CREATE TABLE customer (id text PRIMARY KEY, name text NOT NULL, email text UNIQUE, visits integer DEFAULT 0,
                       since date, is_kind boolean, more jsonb, {FENCE});
CREATE TABLE "or""der; --" ("the id" bigint PRIMARY KEY, "se""lect" text, {FENCE});
"""
TABLES = r"""
  tables = ( { name = "customer"; columns = ["name", "email", "visits", "since", "is_kind", "more"]; },
             { name = "or\"der; --"; id = "the id"; columns = ["se\"lect"]; } );
"""
CONFIG = """
app = "test"; shards = 4; state = "{folder}/state"; plugins = "{plugins}";
store = {{ url = "sqlite:{folder}/q.db"; synchronous = "normal"; }};
lease = {{ ttl = "1s"; drain = "20s"; }};
handlers = {{ sql = {{ plugin = "sql.so"; {seats} batch = {{ max = {batch}; wait = "{wait}"; }};
  retry = {{ attempts = {attempts}; backoff = "{backoff}"; }};
  config = {{ url = "{url}"; {secret} {tables} }}; }}; }};
"""
SEATS = "processes = 2; threads = 2;"


@pytest.fixture(scope="module")
def server():
    made = Postgres()
    try:
        yield made.start()
    finally:
        made.close()


class SqlHost(Host):
    def configure(self, server, *, batch=1, wait="2ms", attempts=1, backoff="20ms", seats=SEATS, user="postgres", more="",
                  secret=""):
        self.config.write_text(CONFIG.format(folder=self.folder, plugins=self.plugins, batch=batch, wait=wait,
                                             attempts=attempts, backoff=backoff, seats=seats, secret=secret,
                                             tables=TABLES, url=server.url(user, more)))
        return self

    def dead(self):
        """What there is to know of each, by key."""
        found = [self.history(row["task_id"]) for row in self.rows("dead")]
        return {json.loads(text)["key"]: text for text in found}

    def history(self, task_id):
        return self.cli("task", task_id, "--json")


@pytest.fixture
def host(quiver, root, tmp_path, server):
    server.fresh(DDL)
    made = SqlHost(quiver, root / "plugins", tmp_path)
    yield made
    made.close()


@pytest.fixture
def chance():
    seed = int(os.environ.get("QUIVER_TEST_SEED", random.randrange(1 << 32)))
    print(f"QUIVER_TEST_SEED={seed}")
    return random.Random(seed)


def task(op, key, table="customer", **data):
    payload = {"op": op, "table": table, "id": key}
    if data:
        payload["data"] = data
    return {"handler": "sql", "key": str(key), "payload": json.dumps(payload)}


class Model:
    """What the rows should be: a row is inserted, updated some times, deleted, inserted again."""

    def __init__(self, chance, keys):
        self.chance = chance
        self.keys = [f"k{i}" for i in range(keys)]
        self.rows = {}

    def next(self):
        key = self.chance.choice(self.keys)
        row = self.rows.get(key)
        number = self.chance.randrange(1000000)
        if not row or row["is_deleted"]:
            self.rows[key] = {"name": f"n{number}", "visits": 0, "is_deleted": False}
            return task("insert", key, name=f"n{number}")
        if self.chance.random() < 0.2:
            row["is_deleted"] = True
            return task("delete", key)
        row["visits"] = number
        return task("update", key, visits=number)

    def check(self, server):
        found = {key: {"name": name, "visits": int(visits), "is_deleted": deleted == "t"}
                 for key, name, visits, deleted in server.sql("SELECT id, name, visits, is_deleted FROM customer")}
        assert found == self.rows


# --- order, and whose write counts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 32])
def test_every_row_is_as_its_last_task_left_it(host, server, chance, batch):
    model = Model(chance, 40)
    host.configure(server, batch=batch).start()
    host.submit([model.next() for _ in range(1500)])
    host.wait_done(1500)
    model.check(server)
    assert host.stop() == 0
    assert host.rows("dead") == []


def test_a_killed_host_repeats_no_row_and_loses_none(host, server, chance):
    """Each kill may fall between the database's commit and the outcome's: then the task comes again."""
    model = Model(chance, 30)
    host.configure(server, batch=8).start()
    for part in range(1, 6):
        host.submit([model.next() for _ in range(400)])
        wait_until(lambda: host.sum("done") > part * 400 - 400 + chance.randrange(300), "some are done")
        host.kill()
        host.start()
    host.wait_done(2000)
    model.check(server)
    assert host.rows("dead") == []


def test_a_write_that_arrives_late_changes_nothing(host, server):
    """A statement is on its way to a server process that has been stopped; its host dies, another one does the task again
    and one more; then the server process goes on."""
    host.configure(server, seats="processes = 1; threads = 1;").start()
    host.submit([task("insert", "a", name="old"), task("update", "a", visits=1)])  # both are prepared now
    host.wait_done(2)
    backend = int(server.value("SELECT pid FROM pg_stat_activity WHERE application_name = 'quiver'"))
    os.kill(backend, signal.SIGSTOP)
    try:
        host.submit([task("update", "a", visits=2)])
        wait_until(lambda: unread_bytes(backend), "the statement has been sent")
        host.kill()
        host.start()
        host.wait_done(3)
        host.submit([task("update", "a", visits=3)])
        host.wait_done(4)
    finally:
        os.kill(backend, signal.SIGCONT)
    wait_until(lambda: not server.sql(f"SELECT 1 FROM pg_stat_activity WHERE pid = {backend}"), "it has done its worst")
    assert server.value("SELECT visits FROM customer") == "3"


def unread_bytes(pid):
    """Whether something waits in one of the process's Unix sockets."""
    inodes = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for line in subprocess.run(["ss", "-xn"], capture_output=True, text=True, check=True).stdout.splitlines()[1:]:
        words = line.split()
        if int(words[2]) > 0 and words[5] in inodes:
            return True
    return False


# --- what failures mean -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 50])
def test_a_bad_task_dies_alone_with_the_databases_words(host, server, batch):
    host.configure(server, batch=batch, attempts=4).start()
    host.submit([task("insert", "z", name="Zoe", email="taken")])
    host.wait_done(1)
    host.submit([task("insert", f"k{i}", name=f"n{i}") for i in range(60)] +
                [task("insert", "twin", name="Tim", email="taken"), task("insert", "nameless", email="x"),
                 task("insert", "number", name="Nat", visits="many"), task("insert", "z2", name="Zed", visits=7)])
    host.wait_done(62)
    wait_until(lambda: len(host.rows("dead")) == 3, "three are dead")
    dead = host.dead()
    assert r'duplicate key value violates unique constraint \"customer_email_key\" (Key (email)=(taken)' in dead["twin"]
    assert r'null value in column \"name\"' in dead["nameless"]
    assert r'invalid input syntax for type integer: \"many\"' in dead["number"]
    assert all(row["reason"] == "rejected" for row in host.rows("dead"))
    assert server.value("SELECT count(*) FROM customer") == "62"


@pytest.mark.parametrize("batch", [1, 16])
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_database_that_goes_away_costs_nothing(host, server, chance, how, batch):
    """Each task has one attempt: had one been burnt, its task would be dead."""
    model = Model(chance, 50)
    host.configure(server, batch=batch, attempts=1).start()
    host.submit([model.next() for _ in range(3000)])
    wait_until(lambda: host.sum("done") > 200, "some are done")
    server.stop(how)
    try:
        host.submit([model.next() for _ in range(100)])
        wait_until(lambda: "have to wait for the database" in host.log(), "it says so")
        assert host.sum("done") < 3100
    finally:
        server.start()
    host.wait_done(3100)
    model.check(server)
    assert host.rows("dead") == []


def test_a_host_starts_without_its_database(host, server):
    server.stop()
    try:
        host.configure(server).start()
        host.submit([task("insert", "a", name="Ann")])
        wait_until(lambda: "have to wait for the database" in host.log(), "it says so")
    finally:
        server.start()
    host.wait_done(1)


def test_a_connection_that_was_cut_is_replaced_unnoticed(host, server):
    host.configure(server, seats="processes = 1; threads = 1;", batch=4).start()
    for number, tasks in enumerate([[task("insert", "a", name="Ann")], [task("update", "a", visits=1)],
                                    [task("insert", key, name="x") for key in "bcdefgh"]]):
        host.submit(tasks)
        host.wait_done([1, 2, 9][number])
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quiver'")
    assert "have to wait for the database" not in host.log()


def test_a_deadlock_is_tried_again(host, server):
    """The task has the customer and waits for the total; somebody has the total and waits for the customer.  The task's
    side looks for deadlocks, the other one does not."""
    server.sql("""
        CREATE TABLE total (visits integer); INSERT INTO total VALUES (0);
        CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN UPDATE total SET visits = visits + new.visits; RETURN new; END $$;
        CREATE TRIGGER add_up AFTER UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION add_up()""")
    host.configure(server, attempts=4, backoff="1m", more="&options=-cdeadlock_timeout%3D3s",
                   secret='statement_timeout = "50s";').start()
    host.submit([task("insert", "a", name="Ann")])
    host.wait_done(1)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with subprocess.Popen(server.psql("app"), stdin=subprocess.PIPE, text=True) as other:
        other.stdin.write("SET deadlock_timeout = '1h'; BEGIN; UPDATE total SET visits = 100; \\echo\n")
        other.stdin.flush()
        wait_until(lambda: server.value("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'") == "1",
                   "the other one has the total")
        stuck = host.submit_one(task("update", "a", visits=5))
        wait_until(lambda: server.value(waits) == "1", "the task waits")
        other.stdin.write("UPDATE customer SET name = 'Bea' WHERE id = 'a'; COMMIT;\n")
        other.stdin.close()
    assert other.returncode == 0
    wait_until(lambda: "deadlock detected" in host.history(stuck), "the task was told")
    assert json.loads(host.history(stuck))["state"] == "parked"
    host.cli("key", "retry", "a")
    host.wait_done(2)
    assert server.sql("SELECT name, customer.visits, total.visits FROM customer, total") == [["Bea", "5", "105"]]


def test_a_serialization_failure_costs_no_batch_anything(host, server):
    """Each task has one attempt; the transaction that they share is doomed when somebody else changes one of its rows."""
    host.configure(server, batch=5, wait="5s", seats="processes = 1; threads = 1;", secret='statement_timeout = "50s";',
                   more="&options=-cdefault_transaction_isolation%3Drepeatable\\%20read").start()
    host.submit([task("insert", key, name=key) for key in "abcde"])
    host.wait_done(5)
    with subprocess.Popen(server.psql("app"), stdin=subprocess.PIPE, text=True) as other:
        other.stdin.write("BEGIN; UPDATE customer SET name = 'changed' WHERE id = 'c';\n")
        other.stdin.flush()
        wait_until(lambda: server.value("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'") == "1",
                   "the other one has the row")
        host.submit([task("update", key, visits=1) for key in "abcde"])
        wait_until(lambda: server.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'") == "1",
                   "the batch waits")
        other.stdin.write("COMMIT;\n")
        other.stdin.close()
    host.wait_done(10)
    assert server.sql("SELECT name, visits FROM customer ORDER BY id") == [[n, "1"] for n in ["a", "b", "changed", "d", "e"]]


def test_a_read_only_database_is_waited_for(host, server):
    """As a standby is, before it is promoted."""
    host.configure(server).start()
    server.sql("ALTER DATABASE app SET default_transaction_read_only = on", "postgres")
    host.submit([task("insert", "a", name="Ann")])
    wait_until(lambda: "have to wait for the database" in host.log(), "it says so")
    server.sql("ALTER DATABASE app RESET default_transaction_read_only", "postgres")
    host.wait_done(1)


# --- hostile input ----------------------------------------------------------------------------------------------------


def test_names_and_values_are_only_names_and_values(host, server):
    hostile = "'; DROP TABLE customer; -- \" \\ $1 %s \u20ac \U0001f600"
    long = "x" * 700000
    host.configure(server, attempts=4).start()
    host.submit([task("insert", "a", name=long, email=hostile, since="2024-02-29", is_kind=True, more={"a": [1, None]}),
                 task("update", "a", visits=7),
                 task("insert", hostile, name="b"),
                 task("insert", 17, table='or"der; --', **{'se"lect': hostile}),
                 task("insert", "n1", name="a\0b"),
                 task("insert", "n2", table='customer"; --', name="a"),
                 task("insert", "n3", **{'name" = 1; --': "a"}),
                 task("insert", "n4", name="a", since="tomorrow-ish"),
                 task("insert", "n6", name="a", email="".join(map(chr, range(0x4e00, 0x8e00)))),
                 {"handler": "sql", "key": "n5", "payload": "{"}])
    host.wait_done(4)
    wait_until(lambda: len(host.rows("dead")) == 6, "six are dead")
    dead = host.dead()
    assert "\\\\u0000 is not allowed" in dead["n1"]
    assert r'table \"customer\"; --\" is not allowed' in dead["n2"]
    assert r'column \"name\" = 1; --\" of table \"customer\" is not allowed' in dead["n3"]
    assert r'invalid input syntax for type date: \"tomorrow-ish\"' in dead["n4"]
    assert "payload: " in dead["n5"]
    assert "index row" in dead["n6"]  # the database's own limit
    assert server.sql("SELECT email, length(name), visits, since, is_kind, more FROM customer WHERE id = 'a'") == \
        [[hostile, "700000", "7", "2024-02-29", "t", '{"a": [1, null]}']]
    assert server.sql("SELECT id FROM customer WHERE name = 'b'") == [[hostile]]
    assert server.sql('SELECT "the id", "se""lect" FROM "or""der; --"') == [["17", hostile]]


# --- secrets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", ["file", "env"])
def test_a_password_stays_where_it_is(host, server, tmp_path, monkeypatch, source):
    word = "Open-Sesame-4711"
    server.sql(f"""DROP ROLE IF EXISTS writer; CREATE ROLE writer LOGIN PASSWORD '{word}';
                   GRANT ALL ON ALL TABLES IN SCHEMA public TO writer""")
    (tmp_path / "secret").write_text(word + "\n")
    monkeypatch.setenv("APP_PASSWORD", word)
    secret = {"file": f'password_file = "{tmp_path}/secret";', "env": 'password_env = "APP_PASSWORD";'}[source]
    seats = SEATS + {"file": "", "env": ' environment = ["APP_PASSWORD"];'}[source]
    host.configure(server, user="writer", secret=secret, seats=seats).start()
    host.submit([task("insert", "a", name="Ann")])
    host.wait_done(1)
    host.stop()
    server.sql("ALTER ROLE writer PASSWORD 'another'")
    host.start()
    host.submit([task("insert", "b", name="Bob")])
    wait_until(lambda: "password authentication failed" in host.log(), "it was refused")
    assert host.sum("done") == 1
    assert word not in "".join(log.read_text() for log in host.logs) + host.cli("status", "--json")
    host.kill()
    server.sql("DROP OWNED BY writer; DROP ROLE writer")
