"""The MDTs' part of the testbed's server: what each has done becomes `md_stats` and the like, and what clients know of
MDTs their `lmv` and `mdc` parameters.

How long an operation takes is the mean of that operation on a real MDT (tests/data/lustre/control/dne.txt), times the
MDT's factor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tarazu.sim.testbed import roots, routers, statfiles, tunables
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.library import MD_OPERATIONS
from tarazu.sim.testbed.statfiles import Counter

MEAN_US = {
    "mknod": 3935,
    "open": 2539,
    "close": 756,
    "unlink": 2502,
    "mkdir": 6329,
    "rmdir": 917,
    "rename": 514,
}
"""Mean time of each on a real MDT; `open`: of one that makes no file, as the row `open` has both."""
INODE_BYTES = 4096
"""What a directory takes of an MDT's space; files take inodes, which are there already."""
DEBUG = roots.DEBUG


def mdt_name(fs_name: str, index: int) -> str:
    return f"{fs_name}-MDT{index:04x}"


def mdt_places(fs_name: str, index: int) -> list[str]:
    """Where the parameters of an MDT are on its server; gone while it is away."""
    name = mdt_name(fs_name, index)
    places = [f"sys/fs/lustre/mdt/{name}", f"proc/fs/lustre/mdt/{name}", f"{DEBUG}/lustre/mdt/{name}"]
    return [*places, f"sys/fs/lustre/osd-ldiskfs/{name}"]


def _count(counters: dict[str, Counter], done: Mapping[str, int], slower: float) -> None:
    """Adds what was done to rows of `md_stats`."""
    for name in MD_OPERATIONS:
        times = done[name] - (done["mknod"] if name == "open" else 0)
        counters[name].add(round(MEAN_US[name] * slower), max(0, times))
    counters["open"].add(round(MEAN_US["mknod"] * slower), done["mknod"])


class MdtStatistics:
    """`tick` brings the MDTs' files up to date."""

    def __init__(self, testbed: Directory, start_s: float) -> None:
        self.testbed, self.start_s = testbed, start_s
        count = testbed.config.mdts
        self.done = [testbed.mds.mdt_done(i) for i in range(count)]
        self.whole = [self._counters() for _ in range(count)]
        self.exports: list[dict[int, dict[str, Counter]]] = [{} for _ in range(count)]
        self.jobs: list[dict[str, dict[str, Counter]]] = [{} for _ in range(count)]
        self.away: set[int] = set()

    @staticmethod
    def _counters() -> dict[str, Counter]:
        return {name: Counter("usecs") for name in MD_OPERATIONS}

    def tick(self, now: float) -> None:
        testbed, jobs = self.testbed, self.testbed.jobs()
        slower = testbed.mdt_factors()
        for index, before in enumerate(self.done):
            done = testbed.mds.mdt_done(index)
            for client, (new, old) in enumerate(zip(done, before, strict=True)):
                grown = {name: new[name] - old[name] for name in MD_OPERATIONS}
                if not any(grown.values()):
                    continue
                name = testbed.client_names[client - 1] if 0 < client <= len(testbed.client_names) else ""
                job = jobs[name].job_id if name in jobs else "" if jobs else "testbed.0"
                _count(self.whole[index], grown, slower[index])
                if client:
                    _count(self.exports[index].setdefault(client, self._counters()), grown, slower[index])
                if job:
                    _count(self.jobs[index].setdefault(job, self._counters()), grown, slower[index])
            self.done[index] = done
            self._write(index, now)
        if len(self.done) > 1:
            self._write_lnet()
        self._write_clients()

    def _write_lnet(self) -> None:
        """What an ossd on this server looks for."""
        requests = sum(sum(client.values()) for done in self.done for client in done)
        stats = statfiles.lnet_stats(requests, requests, 300 * requests, 500 * requests)
        files = {f"{DEBUG}/lnet/stats": stats, f"{DEBUG}/lnet/nis": statfiles.lnet_nis("mds@tcp")}
        roots.write_tree(self.testbed.mds_root, files)

    def capacity(self, index: int) -> dict[str, object]:
        """What `kbytes*` and `files*` say."""
        get = self.testbed.mds.get_mdt
        total, files = get("total", index), get("files_total", index)
        directories = get("directories", index)
        free = max(0, total - get("base", index) - INODE_BYTES * directories)
        taken = get("files_base", index) + directories + get("files", index)
        return {
            "kbytestotal": total // 1024,
            "kbytesfree": free // 1024,
            "kbytesavail": free // 1024,
            "filestotal": files,
            "filesfree": max(0, files - taken),
            "blocksize": 4096,
        }

    def _write(self, index: int, now: float) -> None:
        testbed, root = self.testbed, self.testbed.mds_root
        flags, name = testbed.mds.mdt_flags(index), mdt_name(self.testbed.fs_name, index)
        if flags["away"]:
            self.away.add(index)
            return
        if index in self.away:
            self.away.remove(index)
            for place in mdt_places(testbed.fs_name, index):
                roots.forget(root / place)
        mdt, osd = f"sys/fs/lustre/mdt/{name}", f"sys/fs/lustre/osd-ldiskfs/{name}"
        size = self.capacity(index)
        jobs = {job: (counters, now, self.start_s) for job, counters in self.jobs[index].items()}
        files: dict[str, object] = {f"{osd}/{field}": value for field, value in size.items()}
        files |= {
            f"proc/fs/lustre/mdt/{name}/md_stats": statfiles.stats(self.whole[index], now, self.start_s),
            f"proc/fs/lustre/mdt/{name}/job_stats": statfiles.job_stats(jobs, statfiles.MDT_JOB_ROWS),
            f"{mdt}/uuid": f"{name}_UUID",
            f"{mdt}/num_exports": len(testbed.client_names) + 2,
            f"{mdt}/job_cleanup_interval": 600,
            f"{mdt}/no_create": int(flags["no_create"]),
            f"{mdt}/readonly": 0,
            f"{osd}/fstype": "ldiskfs",
            f"{osd}/mntdev": f"/dev/mapper/mdt{index}",
            f"{osd}/nonrotational": 1,
        }
        for client, counters in self.exports[index].items():
            nid = routers.client_nid(client)
            files[f"{DEBUG}/lustre/mdt/{name}/exports/{nid}/stats"] = statfiles.stats(
                counters, now, self.start_s
            )
        roots.write_tree(root, files)

    def _write_clients(self) -> None:
        testbed, fs = self.testbed, self.testbed.fs_name
        sizes = [self.capacity(i) for i in range(len(self.done))]
        active = [not testbed.mds.mdt_flags(i)["inactive"] for i in range(len(self.done))]
        for number in range(len(testbed.client_names)):
            files = client_files(fs, tunables.instance(number), sizes, active)
            name = f"sys/fs/lustre/lmv/{fs}-clilmv-{tunables.instance(number)}/qos_rr_index"
            text = roots.set_by_others(testbed.client_root(number) / name)
            if text is not None and text.strip().isdecimal():
                testbed.mds.set_mdt("rr_index", int(text), number + 1)
            files[name] = testbed.mds.get_mdt("rr_index", number + 1) % len(self.done)
            roots.write_tree(testbed.client_root(number), files)


def client_files(
    fs_name: str, instance: str, sizes: Sequence[Mapping[str, object]], active: Sequence[bool]
) -> dict[str, object]:
    """`lmv` and `mdc` parameters of a client."""
    lmv = f"{fs_name}-clilmv-{instance}"
    names = ("kbytestotal", "kbytesfree", "kbytesavail", "filestotal", "filesfree")
    whole = {name: sum(int(str(size[name])) for size in sizes) for name in names}
    files: dict[str, object] = {
        f"sys/fs/lustre/lmv/{lmv}/{name}": value
        for name, value in {
            "numobd": len(sizes),
            "activeobd": sum(active),
            "desc_uuid": f"{fs_name}-clilmv_UUID",
            "blocksize": 4096,
            **whole,
        }.items()
    }
    files[f"{DEBUG}/lustre/lmv/{lmv}/target_obd"] = "".join(
        f"{i}: {mdt_name(fs_name, i)}_UUID {'ACTIVE' if on else 'INACTIVE'}\n" for i, on in enumerate(active)
    )
    for i, size in enumerate(sizes):
        mdc = f"sys/fs/lustre/mdc/{mdt_name(fs_name, i)}-mdc-{instance}"
        files |= {f"{mdc}/{name}": size[name] for name in names}
        files[f"{mdc}/active"] = int(active[i])
        files[f"{mdc}/mds_conn_uuid"] = "127.0.0.1@tcp"
        files[f"{mdc}/mds_server_uuid"] = f"{mdt_name(fs_name, i)}_UUID"
    return files
