"""A proxy between a client and a server that breaks the network on command.

Requests go from the client to the server, replies come back.  Every fault holds for all connections, those there and
those to come, until heal():

    hold()                nothing passes in either direction; connections stay open, new ones are accepted
    delay(...)            every piece waits
    lose_replies()        the server gets and executes everything, the client hears nothing
    lose_requests()       the client's words vanish
    lose_reply_of(WORD)   once: the request with WORD in it is executed, its reply is lost and the connection is cut
    half_open()           the server's side is closed; the client is not told, and hears nothing
    straggle(SECONDS)     the client loses its connections, new ones are as good as ever; what it had said last reaches the
                          server only now, long after
    cut(), cut(reset=True) every connection ends now, politely or with RST; new ones are accepted
    refuse()              new connections are refused, too
"""
import contextlib
import os
import socket
import struct
import threading
import time

LAST_WORDS_S = 0.1


class Direction:
    """One of the two ways, and what is wrong with it."""

    def __init__(self):
        self.delay_s = 0.0
        self.is_lost = False
        self.seen_bytes = 0
        self.passed_bytes = 0
        self.lost_bytes = 0


class Connection:
    def __init__(self, proxy, client, server):
        self.proxy, self.client, self.server = proxy, client, server
        self.is_orphan = False  # the server's side is gone and the client is not told
        self.is_doomed = False  # cut after the next reply, which is lost
        self.late = None  # what the client said last, and the server gets later
        for source, target, way in ((client, server, proxy.requests), (server, client, proxy.replies)):
            threading.Thread(target=self.pump, args=(source, target, way), daemon=True).start()

    def pump(self, source, target, way):
        with contextlib.suppress(OSError):
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if self.pass_on(data, way):
                    target.sendall(data)
        if not self.is_orphan and self.late is None:
            self.close()

    def pass_on(self, data, way):
        """Whether the other side gets it."""
        proxy = self.proxy
        with proxy.lock:
            way.seen_bytes += len(data)
        proxy.is_open.wait()
        if way.delay_s:
            threading.Event().wait(way.delay_s)
        with proxy.lock:
            if way is proxy.requests and proxy.doomed_word and proxy.doomed_word in data:
                proxy.doomed_word = None
                self.is_doomed = True
            elif way is proxy.replies and self.is_doomed:
                way.lost_bytes += len(data)
                proxy.lost_replies += 1
                raise ConnectionResetError
            if self.late is not None and way is proxy.requests:
                self.late.append(data)
                return False
            if way.is_lost or self.is_orphan or self.late is not None:
                way.lost_bytes += len(data)
                return False
            way.passed_bytes += len(data)
            return True

    def orphan(self):
        self.is_orphan = True
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()

    def straggle(self, seconds):
        """Listens a little longer, and then hangs up on the client only."""
        self.late = []
        time.sleep(LAST_WORDS_S)
        self.reset_on_close()
        with contextlib.suppress(OSError):
            self.client.shutdown(socket.SHUT_RD)
        self.client.close()
        time.sleep(seconds)
        with contextlib.suppress(OSError):
            self.server.sendall(b"".join(self.late))
            time.sleep(LAST_WORDS_S)
        self.close()

    def reset_on_close(self):
        with contextlib.suppress(OSError):
            self.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def close(self, reset=False):
        if reset:
            self.reset_on_close()
        for one in (self.client, self.server):
            # A thread may be in recv(): close() alone would not wake it.  After SHUT_RDWR no RST is sent.
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RD if reset and one is self.client else socket.SHUT_RDWR)
            with contextlib.suppress(OSError):
                one.close()
        with self.proxy.lock:
            self.proxy.connections.discard(self)


class Proxy:
    """Listens on a free loopback port, or on the unix socket `path`.  `target` is a port of this machine or a path."""

    def __init__(self, target, path=None):
        self.target = target
        self.path = path
        self.port = None
        self.lock = threading.RLock()
        self.connections = set()
        self.requests, self.replies = Direction(), Direction()
        self.is_open = threading.Event()
        self.is_open.set()
        self.doomed_word = None
        self.lost_replies = 0  # those of lose_reply_of()
        self.accepted = 0
        self.listener = None
        self.accept()

    @property
    def url(self):
        return f"redis+unix:{self.path}" if self.path else f"redis://127.0.0.1:{self.port}"

    def accept(self):
        """Takes connections; after refuse() on the same port or path."""
        if self.listener:
            return
        if self.path:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(str(self.path))
        else:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(("127.0.0.1", self.port or 0))
            self.port = listener.getsockname()[1]
        listener.listen(128)
        self.listener = listener
        threading.Thread(target=self.accept_all, args=(listener,), daemon=True).start()

    def accept_all(self, listener):
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                self.connect(client)

    def connect(self, client):
        family = socket.AF_INET if isinstance(self.target, int) else socket.AF_UNIX
        server = socket.socket(family)
        try:
            server.connect(("127.0.0.1", self.target) if isinstance(self.target, int) else str(self.target))
        except OSError:
            client.close()
            server.close()
            return
        if not self.path:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.accepted += 1
            self.connections.add(Connection(self, client, server))

    # --- faults ---

    def hold(self):
        self.is_open.clear()

    def delay(self, requests=0.0, replies=0.0):
        self.requests.delay_s, self.replies.delay_s = requests, replies

    def lose_replies(self):
        self.replies.is_lost = True

    def lose_requests(self):
        self.requests.is_lost = True

    def lose_reply_of(self, word):
        self.doomed_word = word if isinstance(word, bytes) else word.encode()

    def half_open(self):
        for connection in self.snapshot():
            connection.orphan()

    def straggle(self, seconds):
        for connection in self.snapshot():
            threading.Thread(target=connection.straggle, args=(seconds,), daemon=True).start()

    def cut(self, reset=False):
        for connection in self.snapshot():
            connection.close(reset)

    def refuse(self):
        listener, self.listener = self.listener, None
        if listener:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def heal(self):
        """No faults any more.  A connection that was damaged is of no use and is cut."""
        is_damaged = (self.requests.is_lost or self.replies.is_lost)
        self.requests.is_lost = self.replies.is_lost = False
        self.delay()
        self.doomed_word = None
        for connection in self.snapshot():
            if is_damaged or connection.is_orphan:
                connection.close()
        self.is_open.set()
        self.accept()

    def snapshot(self):
        with self.lock:
            return list(self.connections)

    def close(self):
        self.refuse()
        self.is_open.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
