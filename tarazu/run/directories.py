"""The directories of one job step on its leader's node: spools and maps, removed at its end; who else sees them."""

from __future__ import annotations

import os
from pathlib import Path

from tarazu import trusted
from tarazu.config import RunSettings, own_path
from tarazu.errors import TarazuError
from tarazu.run import leftovers
from tarazu.stats import client


class Directories:
    """Named when the step is, made before its program starts; what is done there goes by their descriptors."""

    def __init__(self, run: RunSettings, run_id: str) -> None:
        self.spool = f"{place(run)}/{run_id}"
        """As every node has its own, with `%h` for the host; empty when nothing can be recorded."""
        self.spool_here: Path | None = None
        """This node's, by its descriptor; None while there is none."""
        self.all_maps = own_path(run.map_dir)
        self.map = self.all_maps / run_id
        """Its name, for others."""
        self.map_here = self.map
        """The same by its descriptor."""
        self.in_home = run.map_dir.startswith("~")
        self._place = Path(here(place(run)))
        self._open: list[tuple[str, int]] = []
        self.lease = leftovers.Lease()
        """On all of them."""

    def make_spool(self) -> str:
        """The directory of this node's spools; why it is not where it should be, empty: it is.

        Where the place cannot be used the step has one of its own beside it. Raises TarazuError; then nothing is
        recorded.
        """
        spool, self.spool = self.spool, ""
        moved = ""
        try:
            self.spool_here = self._make(here(spool))
        except TarazuError as error:
            spool = leftovers.beside(spool)
            moved = f"{error}: spools lie in {spool}"
            try:
                self.spool_here = self._make(here(spool))
            except TarazuError:
                raise TarazuError(f"run.spool_dir: {error}") from None
        self.spool = spool
        return moved

    def make_map(self, *, beside_spools: bool) -> str:
        """The directory of the maps; beside the spools where these go to nodes that share neither, and where others
        could change its own place: why, empty: they could not. Raises TarazuError.
        """
        moved = ""
        if not beside_spools:
            try:
                self.map_here = self._make(str(self.map), in_home=self.in_home)
            except TarazuError as error:
                why = f"run.map_dir: {error}"
                if not self.spool:
                    raise TarazuError(why) from None
                moved = f"{why}: maps lie beside the spools, which other nodes do not see"
        if beside_spools or moved:
            self.map = Path(here(self.spool), "map")
            self.map_here = self._make(str(self.map))
        return moved

    def found_here(self, stop_file: str) -> str:
        """$TARAZU_HERE (preload/process/config.c): what processes of this node need not find out; empty: nothing."""
        try:
            spool, maps = os.stat(self.spool_here or ""), os.stat(self.map_here)
        except OSError:
            return ""
        stop = type_by_name(stop_file) if stop_file else ""
        fields = (spool.st_dev, spool.st_ino, stop, maps.st_dev, file_system_type(self.map_here))
        return ":".join(map(str, (os.uname().nodename, *fields)))

    def sweep(self) -> None:
        """Remove what killed leaders left behind."""
        leftovers.sweep(self.all_maps, in_home=self.in_home)
        leftovers.sweep(self._place)

    def remove(self) -> None:
        self.lease.release()
        # Twice: a thread that was left behind may just have written another map.
        for path, directory in (*self._open[::-1], *self._open):
            trusted.remove(path, directory)

    def _make(self, path: str, *, in_home: bool = False) -> Path:
        try:
            directory = trusted.open_directory(path, make=True, in_home=in_home)
            self._open.append((path, directory))
            made = trusted.by_descriptor(directory)
            self.lease.take(made)
        except OSError as error:
            expected = "a directory that can be written to"
            raise TarazuError(f"{path}: expected {expected}, found {error.strerror or error}") from None
        return made


def place(run: RunSettings) -> str:
    """Where steps of this user have their spools, each in a directory; `%h` stands for the host."""
    return trusted.from_root(run.spool_dir.replace("{uid}", str(os.getuid()))).rstrip("/")


def here(path: str) -> str:
    """The same on this node."""
    return path.replace("%h", os.uname().nodename)


LOCAL_FILE_SYSTEMS = frozenset(
    "tmpfs ramfs devtmpfs ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs jfs reiserfs overlay aufs rootfs squashfs vfat "
    "ntfs3 fuseblk".split()
)


def file_system_type(path: Path, mountinfo: Path = Path("/proc/self/mountinfo")) -> str:
    """Type of the file system of the deepest part of `path` that exists; empty when it is unknown."""
    path = path.resolve()
    while not path.exists() and path != path.parent:
        path = path.parent
    try:
        device = os.stat(path).st_dev
        lines = mountinfo.read_bytes().split(b"\n")  # a path may hold what else Unicode ends a line with
    except OSError:
        return ""
    numbers = b"%d:%d" % (os.major(device), os.minor(device))
    its = [line for line in lines if b" %b " % numbers in line]
    best, kind = "", ""
    for line in its or lines:
        mount, _, source = line.partition(b" - ")
        fields, described = mount.split(b" "), source.split(b" ")
        if len(fields) < 5 or not described[0]:
            continue
        type_name = os.fsdecode(described[0])
        if fields[2] == numbers:
            return type_name
        # Some (btrfs, overlay) have other device numbers for their files: there the deepest mount point tells.
        point = client.unescaped(fields[4])
        if len(point) >= len(best) and (path == Path(point) or Path(point) in path.parents):
            best, kind = point, type_name
    return kind


def type_by_name(path: str, mounts: Path = Path("/proc/self/mounts")) -> str:
    """Type of the file system that `path` lies on by its name alone: no server is asked. Empty when it is unknown."""
    best, kind = 0, ""
    for line in client.mount_entries(mounts):
        _, point, type_name, *_ = [*line.split(b" "), b"", b"", b""]
        name = client.unescaped(point)
        if len(name) >= best and name and f"{path}/".startswith(f"{name.rstrip('/')}/"):
            best, kind = len(name), os.fsdecode(type_name)
    return kind


def on_this_node_alone(path: Path) -> bool:
    """True for a directory that no other node sees, unless this node exports it."""
    return file_system_type(path) in LOCAL_FILE_SYSTEMS
