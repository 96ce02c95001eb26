"""What a run's processes see of the world: a wall clock that steps, and a network in which every link can break.

Both by the library tests/preload/world.c, loaded into each of them.
"""
import array
import os
import struct

from proxy import Proxy

PORTS = 65536
OUTSIDE = "outside"  # producers, consumers and commands


class World:
    def __init__(self, folder, library):
        self.folder, self.library = folder, library
        self.links = {}  # (who, the server's name): the proxy between them
        self.peer_links = {}  # the same among servers
        self.steps_ms = {}  # by whose clock

    def environment(self, who, before=()):
        """`before`: other libraries that are to be loaded first."""
        return {**os.environ, "LD_PRELOAD": " ".join([*map(str, before), str(self.library)]),
                "QUIVER_TEST_STEP": str(self.clock_of(who)), "QUIVER_TEST_DETOURS": str(self.detours_of(who))}

    # --- the clock ---

    def clock_of(self, who):
        path = self.folder / f"clock-{who}"
        if who not in self.steps_ms:
            self.step(who, 0)
        return path

    def step(self, who, by_ms):
        """Returns how far its clock is from the machine's now."""
        self.steps_ms[who] = self.steps_ms.get(who, 0) + by_ms
        with open(self.folder / f"clock-{who}", "r+b" if by_ms else "wb") as file:
            file.write(struct.pack("q", self.steps_ms[who]))
        return self.steps_ms[who]

    # --- the network ---

    def detours_of(self, who):
        path = self.folder / f"detours-{who}"
        if not path.exists():
            path.write_bytes(bytes(2 * PORTS))
        return path

    def connect(self, who, servers):
        """From now on a link leads from it to each of the servers: {name: port}."""
        self.links.update(self.detour(who, servers))

    def connect_peers(self, servers):
        """Those who run between each two of them: {name: its ports}."""
        for who in servers:
            ports = {(name, i): port for name, many in servers.items() for i, port in enumerate(many) if name != who}
            self.peer_links.update({(who, *name): link for (_, name), link in self.detour(who, ports).items()})

    def detour(self, who, servers):
        table, links = array.array("H", bytes(2 * PORTS)), {}
        for name, port in servers.items():
            links[who, name] = Proxy(port)
            table[port] = links[who, name].port
        self.detours_of(who).write_bytes(table.tobytes())
        return links

    def links_of_server(self, server):
        """To and from its peers."""
        return [link for (who, to, _), link in self.peer_links.items() if server in (who, to)]

    def scopes(self):
        """What can be broken at once: all links of somebody, or one of them: [(text, links)]."""
        found = {}
        for (who, server), link in sorted(self.links.items()):
            found.setdefault(who, []).append(link)
            found.setdefault(f"{who} and {server}", []).append(link)
        return list(found.items())

    def all_links(self):
        return [*self.links.values(), *self.peer_links.values()]

    def heal(self):
        for link in self.all_links():
            link.heal()

    def close(self):
        for link in self.all_links():
            link.close()
