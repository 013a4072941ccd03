"""Alternate roots of the emulated nodes: which parameter is which file (Lustre 2.17's paths)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tarazu.sim.testbed import statfiles

CPUS = 16
MEMORY_KIB = 64 << 20
FILES_PER_OST = 1 << 20
DEBUG = "sys/kernel/debug"
MDT = "MDT0000"
_written: dict[str, str] = {}


def write(path: Path, text: str) -> None:
    """Replaces a file in one step; does nothing when this process wrote the same text before."""
    key = str(path)
    if _written.get(key) == text:
        return
    if path.parent.name == "lnet" and path.exists():  # LNet's stay the same ones while it is configured
        with open(key, "r+", encoding="utf-8") as out:
            out.write(text)
            out.truncate()
        _written[key] = text
        return
    temporary = f"{key}.new"
    try:
        with open(temporary, "w", encoding="utf-8") as out:
            out.write(text)
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name + ".new").write_text(text, encoding="utf-8")
    os.replace(temporary, key)
    _written[key] = text


def set_by_others(path: Path) -> str | None:
    """What a file has that this process has not written there, which from now on counts as written; None where it has
    what it was given. Nobody is written over who sets it again meanwhile.
    """
    written = _written.get(str(path))
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    if written is None or text == written:
        return None
    _written[str(path)] = text
    return text


def forget(root: Path) -> None:
    """What lies below `root` is gone, and is to be written anew."""
    for name in [name for name in _written if Path(name).is_relative_to(root)]:
        del _written[name]


def write_tree(root: Path, values: Mapping[str, object]) -> None:
    """`{"sys/fs/lustre/version": ...}`; a newline is appended where there is none."""
    for name, value in values.items():
        text = str(value)
        write(root / name, text if text.endswith("\n") or not text else text + "\n")


def target_name(fs_name: str, index: int) -> str:
    return f"{fs_name}-OST{index:04x}"


def obdfilter(fs_name: str, index: int) -> str:
    """Where the parameters of an OST are on its OSS."""
    return f"sys/fs/lustre/obdfilter/{target_name(fs_name, index)}"


def export(fs_name: str, index: int, nid: str) -> str:
    """Below /sys/kernel/debug: what an OST knows of one of its clients."""
    return f"lustre/obdfilter/{target_name(fs_name, index)}/exports/{nid}"


def device_name(index: int) -> str:
    """The block device of an OST."""
    return f"dm-{index}"


def capacity(total_bytes: int, free_bytes: int, avail_bytes: int) -> dict[str, object]:
    """What `kbytes*` and `files*` say; values in KiB."""
    return {
        "kbytestotal": total_bytes // 1024,
        "kbytesfree": free_bytes // 1024,
        "kbytesavail": avail_bytes // 1024,
        "filestotal": FILES_PER_OST,
        "filesfree": FILES_PER_OST - 301,
        "blocksize": 4096,
    }


def lnet_files(
    nids: Sequence[str], routing: bool, routes: Sequence[tuple[str, str, bool]] = ()
) -> dict[str, object]:
    """LNet of one node: its own NIDs, whether it forwards, (net, router, is it up)."""
    return {
        "sys/fs/lustre/version": statfiles.VERSION,
        f"{DEBUG}/lnet/nis": statfiles.lnet_nis(*nids),
        f"{DEBUG}/lnet/routes": statfiles.lnet_routes(routing, routes),
    }


def oss_static(nid: str | None) -> dict[str, object]:
    """`nid` None: LNet's files come from `lnet_files`."""
    lnet: dict[str, object] = {f"{DEBUG}/lnet/nis": statfiles.lnet_nis(nid)} if nid else {}
    return lnet | {
        "sys/fs/lustre/version": statfiles.VERSION,
        "sys/fs/lustre/jobid_var": "procname_uid",
        "sys/fs/lustre/jobid_name": "%e.%u",
        "sys/fs/lustre/health_check": "healthy",
        "proc/mounts": "proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\ndebugfs /sys/kernel/debug debugfs rw 0 0\n",
    }


def ost_files(
    fs_name: str, index: int, flags: Mapping[str, bool], sizes: Mapping[str, object]
) -> dict[str, object]:
    """State and capacity of one OST on its OSS."""
    target = target_name(fs_name, index)
    base = obdfilter(fs_name, index)
    osd = f"sys/fs/lustre/osd-ldiskfs/{target}"
    state = "".join(letter for letter, on in (("d", flags["degraded"]), ("R", flags["readonly"])) if on)
    files: dict[str, object] = {f"{base}/{name}": value for name, value in sizes.items()}
    files |= {f"{osd}/{name}": value for name, value in sizes.items()}
    return files | {
        f"{base}/degraded": int(flags["degraded"]),
        f"{base}/no_create": int(flags["no_create"]),
        f"{base}/readonly": int(flags["readonly"]),
        f"{base}/statfs_state": state,
        f"{base}/uuid": f"{target}_UUID",
        f"{base}/fstype": "osd-ldiskfs",
        f"{base}/num_exports": 3,
        f"{base}/job_cleanup_interval": 600,
        f"{osd}/nonrotational": 1,
        f"{osd}/fstype": "ldiskfs",
        f"{osd}/mntdev": f"/dev/{device_name(index)}",
    }


def _target_obd(fs_name: str, active: Sequence[bool]) -> str:
    return "".join(
        f"{i}: {target_name(fs_name, i)}_UUID {'ACTIVE' if on else 'INACTIVE'}\n"
        for i, on in enumerate(active)
    )


def _pool_files(prefix: str, fs_name: str, pools: Mapping[str, Sequence[int]]) -> dict[str, object]:
    return {
        f"{prefix}/{name}": "".join(f"{target_name(fs_name, i)}_UUID\n" for i in osts)
        for name, osts in pools.items()
    }


def mds_files(
    fs_name: str,
    flags: Sequence[Mapping[str, bool]],
    sizes: Sequence[Mapping[str, object]],
    pools: Mapping[str, Sequence[int]],
    striping: tuple[int, int],
    weights: Sequence[str],
    tunables: Mapping[str, object],
    lost: Collection[int] = (),
    spills: Mapping[str, tuple[str, int, bool]] = MappingProxyType({}),
) -> dict[str, object]:
    """`lod` and `osp` parameters of the MDS; `striping` is the file system's (stripe count, stripe size in bytes);
    `weights`: a line of each OST for `qos_ost_weights`; `tunables`: `qos_*`; `lost`: OSTs to which the MDS has no
    connection; `spills`: of each pool target, threshold, and whether it spills over now.
    """
    active = [not f["inactive"] for f in flags]
    lod = f"lod/{fs_name}-{MDT}-mdtlov"
    files: dict[str, object] = {
        "sys/fs/lustre/version": statfiles.VERSION,
        "sys/fs/lustre/health_check": "healthy",
        f"{DEBUG}/lustre/{lod}/target_obd": _target_obd(fs_name, active),
        f"{DEBUG}/lustre/{lod}/qos_ost_weights": "".join(weights),
    }
    for pool, members in pools.items():
        of_pool = "".join(weights[i] for i in members)
        files[f"{DEBUG}/lustre/{lod}/pool/{pool}/qos_ost_weights"] = of_pool
    for pool, (target, percent, active_now) in spills.items():
        of_pool = f"proc/fs/lustre/{lod}/pool/{pool}"
        files[f"{of_pool}/spill_target"] = target
        files[f"{of_pool}/spill_threshold_pct"] = percent
        files[f"{of_pool}/spill_is_active"] = int(active_now)
    for name, value in {
        "numobd": len(active),
        "activeobd": sum(active),
        "stripecount": striping[0],
        "stripesize": striping[1],
        "stripeoffset": -1,
        "qos_maxage": 5,
        **tunables,
        "uuid": f"{fs_name}-{MDT}-mdtlov_UUID",
    }.items():
        files[f"sys/fs/lustre/{lod}/{name}"] = value
    files |= _pool_files(f"proc/fs/lustre/{lod}/pools", fs_name, pools)
    for i, flag in enumerate(flags):
        osp = f"sys/fs/lustre/osp/{target_name(fs_name, i)}-osc-{MDT}"
        files |= {f"{osp}/{name}": value for name, value in sizes[i].items()}
        files[f"{osp}/active"] = int(active[i])
        files[f"{osp}/max_create_count"] = 0 if flag["no_create"] else 20000
        files[f"{osp}/prealloc_status"] = -28 if flag["full"] else 0
        files[f"{osp}/ost_conn_uuid"] = "127.0.0.1@tcp"
        letters = (("D", "degraded"), ("R", "readonly"), ("N", "no_create"), ("S", "full"))
        files[f"{osp}/statfs_state"] = "".join(letter for letter, name in letters if flag[name])
        state = "CONNECTING" if i in lost else "FULL"
        files[osp.replace("sys/fs", DEBUG, 1) + "/state"] = (
            f"current_state: {state}\nstate_history:\n - [ 1795165919, CONNECTING ]\n - [ 1795165919, FULL ]\n"
        )
    return files


def client_files(
    fs_name: str,
    instance: str,
    mount: Path,
    flags: Sequence[Mapping[str, bool]],
    sizes: Sequence[Mapping[str, object]],
    pools: Mapping[str, Sequence[int]],
    striping: tuple[int, int],
) -> dict[str, object]:
    """`lov`, `osc` and `llite` parameters and the mount table of a client; `instance` is llite's hexadecimal id."""
    active = [not f["inactive"] for f in flags]
    lov, llite = f"lov/{fs_name}-clilov-{instance}", f"llite/{fs_name}-{instance}"
    escaped = str(mount).replace(" ", "\\040")
    whole = {
        name: sum(int(str(s[name])) for s in sizes) for name in ("kbytestotal", "kbytesfree", "kbytesavail")
    }
    files: dict[str, object] = {
        "sys/fs/lustre/version": statfiles.VERSION,
        "sys/fs/lustre/jobid_var": "procname_uid",
        "sys/fs/lustre/jobid_name": "%e.%u",
        "proc/mounts": f"proc /proc proc rw 0 0\nsysfs /sys sysfs rw 0 0\n"
        f"127.0.0.1@tcp:/{fs_name} {escaped} lustre rw,checksum,flock,lazystatfs 0 0\n",
        f"{DEBUG}/lustre/{lov}/target_obd": _target_obd(fs_name, active),
        f"sys/fs/lustre/{llite}/uuid": f"{instance[-12:]}-testbed",
        f"sys/fs/lustre/{llite}/fstype": "lustre",
        f"sys/fs/lustre/{llite}/blocksize": 4096,
    }
    for name, value in {
        "numobd": len(active),
        "activeobd": sum(active),
        "stripecount": striping[0],
        "stripesize": striping[1],
        "stripeoffset": -1,
        "stripetype": 1,
        "blocksize": 4096,
        "desc_uuid": f"{fs_name}-clilov_UUID",
        **whole,
    }.items():
        files[f"sys/fs/lustre/{lov}/{name}"] = value
    files |= {f"sys/fs/lustre/{llite}/{name}": value for name, value in whole.items()}
    files |= _pool_files(f"proc/fs/lustre/{lov}/pools", fs_name, pools)
    for i, on in enumerate(active):
        osc = f"sys/fs/lustre/osc/{target_name(fs_name, i)}-osc-{instance}"
        files[f"{osc}/active"] = int(on)
        files[f"{osc}/ost_conn_uuid"] = "127.0.0.1@tcp"
        files |= {f"{osc}/{name}": sizes[i][name] for name in (*whole, "filestotal", "filesfree")}
    return files
