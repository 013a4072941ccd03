"""Clean root trees to install into: Debian's smallest one with systemd, and one with glibc, a shell, nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

INCLUDED = "systemd,procps,logrotate"
BOOTSTRAP_S = 300.0


def debian(root: Path, cache: Path) -> None:
    """Unpacks Debian's minimal system into `root`; it is made once, by mmdebstrap, and kept as `cache`."""
    if not cache.exists():
        cache.parent.mkdir(parents=True, exist_ok=True)
        made = cache.with_suffix(".new.tar")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={INCLUDED}", "bookworm", made]
        subprocess.run(command, check=True, timeout=BOOTSTRAP_S, stdin=subprocess.DEVNULL)
        made.rename(cache)
    root.mkdir(parents=True)
    subprocess.run(["tar", "-C", root, "-xf", cache, "--exclude=./dev/*"], check=True)


def glibc_only(root: Path) -> None:
    """The loader and what is part of glibc, and a static shell: no libstdc++, no libssl, no Python, no systemd."""
    for name in ("bin", "proc", "dev", "tmp", "etc", "usr/bin", "lib64"):
        (root / name).mkdir(parents=True)
    shell = shutil.which("busybox")
    if shell is None:
        raise SystemExit("day-one: needs busybox-static")
    shutil.copy2(shell, root / "bin/busybox")
    for name in ("sh", "rm", "true", "ls", "cat"):
        (root / "bin" / name).symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\n")
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    shutil.copy2(loader.resolve(), root / "lib64" / loader.name)
    here = Path(
        subprocess.run(
            ["cc", "-print-file-name=libc.so.6"], capture_output=True, text=True, check=True
        ).stdout
    )
    target = root / here.parent.relative_to("/")
    target.mkdir(parents=True)
    for name in ("c.so.6", "m.so.6", "dl.so.2", "pthread.so.0", "rt.so.1", "util.so.1", "resolv.so.2"):
        shutil.copy2(here.parent / f"lib{name}", target)


def inside(root: Path, *words: str) -> str:
    """What a program says in the tree; it has /proc, and no environment. Raises SystemExit where it fails."""
    mount = f'mount -t proc proc {root}/proc && exec chroot {root} "$@"'
    command = ["unshare", "--mount", "--pid", "--fork", "--net", "sh", "-c", mount, "sh", *words]
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=120)
    if done.returncode:
        raise SystemExit(
            f"day-one: {root.name}: {' '.join(words)[:200]}: status {done.returncode}\n{done.stderr}"
        )
    return done.stdout


def listing(root: Path) -> set[str]:
    return {
        str(Path(d, f).relative_to(root)) for d, folders, files in os.walk(root) for f in (*folders, *files)
    }
