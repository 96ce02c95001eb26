"""Producers written from runtime/store/redis/README.md alone: a stock client, and nothing but a socket."""
import json
import subprocess
import zlib

import pytest

redis = pytest.importorskip("redis")

PYTHON_PRODUCER = r"""
import sys, zlib, redis
path, app = sys.argv[1:]
r = redis.Redis(unix_socket_path=path)
shards = int(r.hget("quiver:{%s}:app" % app, "shards"))
for number in range(100):
    key = b"python-%d" % (number % 5)
    shard = zlib.crc32(key) % shards
    r.rpush(b"quiver:{%s:%d}:normal" % (app.encode(), shard), b"qv1\nkey:%s\nhandler:work\n\n%d" % (key, number))
"""

NODE_PRODUCER = r"""
const net = require('net');
const [path, app] = process.argv.slice(1);
const table = Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});
const crc32 = (bytes) => {
  let c = 0xffffffff;
  for (const b of bytes) c = table[(c ^ b) & 255] ^ (c >>> 8);
  return (c ^ 0xffffffff) >>> 0;
};
const command = (...words) => Buffer.concat([Buffer.from(`*${words.length}\r\n`), ...words.flatMap((w) => {
  const bytes = Buffer.from(w);
  return [Buffer.from(`$${bytes.length}\r\n`), bytes, Buffer.from('\r\n')];
})]);
const socket = net.connect(path);
let shards = 0, answers = 0;
socket.write(command('HGET', `quiver:{${app}}:app`, 'shards'));
socket.on('data', (data) => {
  if (!shards) {
    shards = Number(data.toString().split('\r\n')[1]);
    for (let n = 0; n < 100; n++) {
      const key = `node-${n % 5}-ü`;
      const shard = crc32(Buffer.from(key)) % shards;
      socket.write(command('RPUSH', `quiver:{${app}:${shard}}:normal`, `qv1\nkey:${key}\nhandler:work\n\n${n}`));
    }
  } else if ((answers += data.toString().split(':').length - 1) === 100) socket.end();
});
"""


def in_order(host, prefix):
    """Each key's payloads, in the order in which they were handled."""
    seen = {}
    for line in host.ledger():
        if line.what == "end" and line.key.startswith(prefix):
            seen.setdefault(line.key, []).append(line.number)
    return seen


@pytest.mark.parametrize("language", ["python", "node"])
def test_a_producer_written_from_the_page(redis_host, language):
    host = redis_host.configure(shards=16, work="").start()
    words = ["/usr/bin/python3", "-c", PYTHON_PRODUCER] if language == "python" else ["node", "-e", NODE_PRODUCER]
    subprocess.run([*words, host.redis.socket, "test"], check=True, timeout=60)
    host.wait_done(100)
    seen = in_order(host, language)
    assert len(seen) == 5
    for key, numbers in seen.items():
        shard = zlib.crc32(key.encode()) % 16
        assert numbers == sorted(numbers) and len(numbers) == 20, (key, shard, numbers)
    assert json.loads(host.cli("status", "--json"))
    assert host.stop() == 0
