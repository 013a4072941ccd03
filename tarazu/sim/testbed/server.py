"""The testbed's server process: keeps the nodes' statistics current from what lies in the mount.

Every interval it walks the mount, adds up the objects of all files by their layouts, tells the emulated MDS how full
its OSTs are, and rewrites the files of the alternate roots. SIGUSR1 makes it do so at once; SIGTERM ends it.
When it is gone, programs go on working; only the statistics stand still.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tarazu.sim.testbed import roots, routers, statfiles, tunables
from tarazu.sim.testbed.mdt_server import MdtStatistics
from tarazu.sim.testbed.statfiles import RPC_BYTES, Counter
from tarazu.sim.testbed.testbed import Testbed, open_testbed
from tarazu.sim.testbed.usage import regular_files

RPC_OVERHEAD_US = 500
"""Service time of a write RPC beside its transfer."""
NETWORK_BYTES_PER_S = 2e9
"""At which RPCs arrive. As on a real server, `write` in `obdfilter.*.stats` holds this and not the wait for the disk,
which is in `brw_stats`, `diskstats` and `ost_io`.
"""


class OstCounters:
    """Counters of one OST since the server started."""

    def __init__(self) -> None:
        self.stats = {
            "read_bytes": Counter("bytes"),
            "write_bytes": Counter("bytes"),
            "read": Counter("usecs"),
            "write": Counter("usecs"),
            "destroy": Counter("usecs"),
            "create": Counter("usecs"),
            "statfs": Counter("usecs"),
        }
        self.io_sizes: dict[int, int] = {}
        self.io_times: dict[int, int] = {}
        self.disk_ms = 0.0

    def wrote(self, amount: int, speed: float, rpc_bytes: int = RPC_BYTES) -> int:
        """Returns the number of RPCs; `speed` of the disk in bytes per second."""
        whole, rest = divmod(amount, rpc_bytes)
        for size, times in ((rpc_bytes, whole), (rest, 1 if rest else 0)):
            if times:
                self.stats["write_bytes"].add(size, times)
                self.stats["write"].add(round(size / NETWORK_BYTES_PER_S * 1e6) + RPC_OVERHEAD_US, times)
                disk = min(RPC_BYTES, max(4096, 1 << (size - 1).bit_length()))
                self.io_sizes[disk] = self.io_sizes.get(disk, 0) + times
                for label, ios in statfiles.time_classes(size / speed * 1e3, times).items():
                    self.io_times[label] = self.io_times.get(label, 0) + ios
                self.disk_ms += times * size / speed * 1e3
        return whole + (1 if rest else 0)


class StatisticsServer:
    """One testbed's statistics; `tick` brings all files up to date."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.start_s = self.last_s = time.time()
        count = len(testbed.oss_of_ost)
        self.counters = [OstCounters() for _ in range(count)]
        self.jobs = [{name: c.stats[name] for name in ("write_bytes", "write")} for c in self.counters]
        self.named: list[dict[str, Counter]] = [{} for _ in range(count)]
        """What each job wrote on each OST, where clients have jobs."""
        self.bytes, self.objects, self.of_clients = self._account()
        osts_of = {
            testbed.oss_root(name): [i for i, oss in enumerate(testbed.oss_of_ost) if oss == name]
            for name in testbed.oss_names
        }
        self.forwarded = routers.Forwarded(testbed.router_names, osts_of) if testbed.router_names else None
        self.exports: dict[tuple[int, int], Counter] = {}
        """What each client, from 1, wrote on each OST."""
        self.waits = {name: Counter("usecs") for name in testbed.oss_names}
        self.requests = {name: Counter("usecs") for name in testbed.oss_names}
        self.lnet = {name: [0, 0, 0, 0] for name in testbed.oss_names}
        self.cpu_ticks = {name: [0.0, 0.0] for name in testbed.oss_names}
        self.mdts = MdtStatistics(testbed, self.start_s)
        self.ticks = 0
        self.next_s = testbed.interval_s
        """Until a connection of the MDS is lost, if that is sooner."""

    def tick(self) -> None:
        now = time.time()
        used, objects, of_clients = self._account()
        grown = [max(0, new - old) for new, old in zip(used, self.bytes, strict=True)]
        speeds = self.testbed.speeds()
        by_job = self._by_job(of_clients)
        for i, counters in enumerate(self.counters):
            before = counters.stats["write"].total + 1000 * counters.disk_ms
            rpcs = sum(counters.wrote(amount, speeds[i], size) for amount, size in by_job[i])
            rpcs += counters.wrote(max(0, grown[i] - sum(amount for amount, _ in by_job[i])), speeds[i])
            spent = counters.stats["write"].total + 1000 * counters.disk_ms - before
            counters.stats["create"].add(200, max(0, objects[i] - self.objects[i]))
            counters.stats["destroy"].add(300, max(0, self.objects[i] - objects[i]))
            counters.stats["statfs"].add(50)
            self._network(self.testbed.oss_of_ost[i], rpcs, grown[i], int(spent))
            self.testbed.mds.set("used", used[i], i)
        if self.forwarded:
            rows = zip(of_clients, self.of_clients, strict=True)
            written = [[max(0, a - b) for a, b in zip(*row, strict=True)] for row in rows]
            self.forwarded.carry(written, self.testbed.dead(), now)
            self._count_exports(written)
        self.bytes, self.objects, self.of_clients = used, objects, of_clients
        self._cpu(grown, speeds, max(now - self.last_s, 1e-3))
        self._take_over()
        self._write(now)
        self.mdts.tick(now)
        self.last_s = now
        self.ticks += 1
        roots.write(self.testbed.directory / "run" / "ticks", f"{self.ticks}\n")

    def _by_job(self, of_clients: Sequence[Sequence[int]]) -> list[list[tuple[int, int]]]:
        """For each OST what clients with a job wrote, and in RPCs of what size; it is counted to their jobs."""
        jobs = self.testbed.jobs()
        parts: list[list[tuple[int, int]]] = [[] for _ in self.counters]
        for client, name in enumerate(self.testbed.client_names, 1):
            job = jobs.get(name)
            for ost in range(len(parts)) if job else ():
                before = self.of_clients[client][ost] if client < len(self.of_clients) else 0
                amount = max(0, of_clients[client][ost] - before) if client < len(of_clients) else 0
                if job and amount:
                    counter = self.named[ost].setdefault(job.job_id, Counter("bytes"))
                    whole, rest = divmod(amount, job.rpc_bytes)
                    counter.add(job.rpc_bytes, whole)
                    counter.add(rest, 1 if rest else 0)
                    parts[ost].append((amount, job.rpc_bytes))
        return parts

    def _count_exports(self, written: Sequence[Sequence[int]]) -> None:
        for client, row in enumerate(written):
            for ost, amount in enumerate(row):
                if client and amount:
                    counter = self.exports.setdefault((ost, client), Counter("bytes"))
                    whole, rest = divmod(amount, RPC_BYTES)
                    counter.add(RPC_BYTES, whole)
                    counter.add(rest, 1 if rest else 0)

    def _account(self) -> tuple[list[int], list[int], list[list[int]]]:
        """Bytes and objects of each OST; its bytes by the client that made the file, with routers or jobs."""
        clients = len(self.testbed.client_names) if self.testbed.router_names or self.testbed.jobs() else 0
        paths = list(regular_files(self.testbed.mount))
        rows, objects = self.testbed.mds.account_of_clients(paths, clients)
        return [sum(column) for column in zip(*rows, strict=True)], objects, rows

    def _network(self, oss: str, rpcs: int, amount: int, usecs: int) -> None:
        lnet = self.lnet[oss]
        lnet[0] += rpcs + 1
        lnet[1] += 2 * rpcs + 1
        lnet[2] += 300 * (rpcs + 1)
        lnet[3] += amount + 500 * (rpcs + 1)
        if rpcs:
            self.waits[oss].add(usecs // rpcs // 10, rpcs)
            self.requests[oss].add(usecs // rpcs, rpcs)

    def _cpu(self, grown: Sequence[int], speeds: Sequence[float], elapsed_s: float) -> None:
        loads = self.testbed.oss_loads()
        for name, ticks in self.cpu_ticks.items():
            mine = [i for i, oss in enumerate(self.testbed.oss_of_ost) if oss == name]
            busy_s = sum(grown[i] / speeds[i] for i in mine) / roots.CPUS
            load = loads.get(name, {})
            share = load.get("cpu", min(1.0, busy_s / elapsed_s))
            self.lnet[name][3] += int(load.get("lnet_bytes_per_s", 0.0) * elapsed_s)
            ticks[0] += 100 * elapsed_s * share
            ticks[1] += 100 * elapsed_s * (1 - share)

    def _take_over(self) -> None:
        """What somebody has set by `lctl set_param` on the servers keeps new files off, too."""
        testbed = self.testbed
        for i, oss in enumerate(testbed.oss_of_ost):
            base = testbed.oss_root(oss) / roots.obdfilter(testbed.fs_name, i)
            for name in ("degraded", "no_create"):
                if (text := roots.set_by_others(base / name)) is not None:
                    testbed.mds.set_flags(i, {name: text.strip() == "1"})

    def _write(self, now: float) -> None:
        testbed, mds, fs = self.testbed, self.testbed.mds, self.testbed.fs_name
        flags = [mds.flags(i) for i in range(len(self.counters))]
        sizes = []
        for i, state in enumerate(flags):
            total, taken = mds.get("total", i), mds.get("base", i) + mds.get("used", i)
            free = max(0, total - taken)
            sizes.append(roots.capacity(total, free, 0 if state["full"] else free))
        dead = testbed.dead()
        lost = [i for i, oss in enumerate(testbed.oss_of_ost) if dead.get(oss, now + 1) <= now]
        if self.forwarded:
            self._write_routers(self.forwarded, now)
        self.next_s = min((at - now for at in dead.values() if at > now), default=testbed.interval_s)
        for i, counters in enumerate(self.counters):
            if testbed.oss_of_ost[i] in dead:
                continue
            root = testbed.oss_root(testbed.oss_of_ost[i])
            target = roots.target_name(fs, i)
            roots.write_tree(root, roots.ost_files(fs, i, flags[i], sizes[i]))
            stats = statfiles.stats(counters.stats, now, self.start_s)
            jobs: dict[str, tuple[dict[str, Counter], float, float]] = {
                job: ({"write_bytes": counter}, now, self.start_s) for job, counter in self.named[i].items()
            }
            if not testbed.jobs() and self.jobs[i]["write"].samples:
                jobs = {"testbed.0": (self.jobs[i], now, self.start_s)}
            roots.write_tree(
                root,
                {
                    f"{roots.DEBUG}/lustre/obdfilter/{target}/stats": stats,
                    f"{roots.DEBUG}/lustre/osd-ldiskfs/{target}/brw_stats": statfiles.brw_stats(
                        counters.io_sizes, counters.io_times, now, self.start_s
                    ),
                    f"proc/fs/lustre/obdfilter/{target}/job_stats": statfiles.job_stats(jobs),
                },
            )
        for (i, client), counter in self.exports.items():
            if testbed.oss_of_ost[i] not in dead:
                path = f"{roots.DEBUG}/{roots.export(fs, i, str(routers.client_nid(client)))}/stats"
                text = statfiles.stats({"write_bytes": counter}, now, self.start_s)
                roots.write_tree(testbed.oss_root(testbed.oss_of_ost[i]), {path: text})
        self._write_hosts(now)
        striping = (mds.get("stripe_count"), mds.get("stripe_size"))
        qos = {f"qos_{n}": f"{(mds.get(n) * 100 + 255) >> 8}%" for n in ("threshold_rr", "prio_free")}
        weights = [self._weights(i) for i in range(len(self.counters))]
        spills = {pool: mds.spill(pool) for pool in testbed.pools}
        mds_files = roots.mds_files(fs, flags, sizes, testbed.pools, striping, weights, qos, lost, spills)
        roots.write_tree(testbed.mds_root, mds_files | self._host("mds", now, 0.0, 0.2))
        for number in range(len(testbed.client_names)):
            roots.write_tree(
                testbed.client_root(number),
                roots.client_files(
                    fs,
                    tunables.instance(number),
                    testbed.client_mount(number),
                    flags,
                    sizes,
                    testbed.pools,
                    striping,
                ),
            )

    def _weights(self, ost: int) -> str:
        """Its line of `qos_ost_weights`."""
        name, get = self.testbed.oss_of_ost[ost], self.testbed.mds.get
        oss = self.testbed.oss_names.index(name)
        values = (get(f, ost) for f in ("weight", "penalty", "penalty_per_obj", "weighed", "last_used"))
        of_oss = (get(f"oss_{f}", oss) for f in ("avail", "penalty", "penalty_per_obj", "last_used"))
        return statfiles.qos_weights(ost, tuple(values), f"{name}@tcp", tuple(of_oss))

    def _write_routers(self, forwarded: routers.Forwarded, now: float) -> None:
        dead = self.testbed.dead()
        routes = forwarded.routes(dead)
        states = [(net, nid, down is None or down > now) for net, nid, down in routes]
        for number, name in enumerate(self.testbed.oss_names, 1):
            root = self.testbed.oss_root(name)
            roots.write_tree(root, roots.lnet_files([str(routers.oss_nid(number))], False, states))
        for number, name in enumerate(self.testbed.router_names, 1):
            own = [str(routers.router_nid(number, net)) for net in (routers.SERVER_NET, routers.CLIENT_NET)]
            count, length = forwarded.counts[name], forwarded.lengths[name]
            stats = {
                f"{roots.DEBUG}/lnet/stats": statfiles.lnet_stats(count, count, length, length, count, length)
            }
            files = self._host(name, now, 0.0, 0.1) | roots.lnet_files(own, True) | stats
            roots.write_tree(self.testbed.router_root(name), files)

    def _host(self, name: str, now: float, cpu: float, memory: float) -> dict[str, object]:
        busy, idle = self.cpu_ticks.get(name, [0.0, 100 * (now - self.start_s)])
        return {
            "proc/stat": statfiles.proc_stat(int(busy), int(idle), roots.CPUS, int(self.start_s)),
            "proc/meminfo": statfiles.meminfo(roots.MEMORY_KIB, memory),
            "proc/loadavg": f"{cpu * roots.CPUS:.2f} {cpu * roots.CPUS:.2f} {cpu * roots.CPUS:.2f} 1/100 1\n",
        }

    def _write_hosts(self, now: float) -> None:
        loads = self.testbed.oss_loads()
        for name in self.testbed.oss_names:
            load = loads.get(name, {})
            io_stats = {"req_waittime": self.waits[name], "ost_write": self.requests[name]}
            files = self._host(name, now, load.get("cpu", 0.0), load.get("memory", 0.2))
            files |= roots.oss_static(None if self.forwarded else f"{name}@tcp")
            files[f"{roots.DEBUG}/lnet/stats"] = statfiles.lnet_stats(*self.lnet[name])
            files[f"{roots.DEBUG}/lustre/ost/OSS/ost_io/stats"] = statfiles.stats(io_stats, now, self.start_s)
            files["proc/diskstats"] = statfiles.diskstats(self._disks(name))
            roots.write_tree(self.testbed.oss_root(name), files)

    def _disks(self, oss: str) -> dict[str, tuple[int, int, int, int]]:
        return {
            roots.device_name(i): (
                sum(c.io_sizes.values()),
                c.stats["write_bytes"].total,
                int(c.disk_ms),
                int(c.disk_ms),
            )
            for i, c in enumerate(self.counters)
            if self.testbed.oss_of_ost[i] == oss
        }


def main(arguments: Sequence[str]) -> int:
    """Runs until SIGTERM, or until the testbed's directory disappears."""
    wanted = {signal.SIGUSR1, signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
    testbed = open_testbed(Path(arguments[0]))
    server = StatisticsServer(testbed)
    while (testbed.directory / "testbed.json").exists():
        server.tick()
        arrived = signal.sigtimedwait(wanted, min(testbed.interval_s, server.next_s + 0.001))
        if arrived is not None and arrived.si_signo != signal.SIGUSR1:
            break
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
