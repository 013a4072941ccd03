"""The programs that a person finds on a testbed's nodes: stand-ins for lfs, lctl, lnetctl, ssh and systemctl.

Small scripts: they are started often, without what this interpreter loads for everybody else, and by users who may not
come to where it lies.

TB/bin               on all nodes: `lfs` and `ssh`, which goes to the testbed's nodes, and elsewhere by the system's own
the node's own bin   `lctl` with the node's parameters, on the MDS with pools too; `lnetctl`; `systemctl` of its daemons
"""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.library import library_directory

_MODULES = ("lfs", "lfs_dirs", "lfs_files", "lfs_targets", "lctl", "lctl_pools", "lnetctl")
_SYSTEMS_OWN = """PATH=$(printf %s "$PATH" | tr : '\\n' | grep -vxF {here} | paste -sd:); exec {name} "$@" """
_SSH = """\
# To a node of the testbed; anywhere else by the system's own ssh.
case "${{1#*@}}" in
{nodes}) node=${{1#*@}}; shift ;;
*) {systems_own};;
esac
[ $# = 0 ] && set -- exec "${{SHELL:-/bin/sh}}"
exec {python} -m tarazu sim testbed exec {directory} --on "$node" -- /bin/sh -c "$*"
"""


def make(testbed: Directory) -> None:
    """Write all of them."""
    python = f"{shlex.quote(shutil.which('python3', path='/usr/bin:/bin') or sys.executable)} -I -S"
    directory = testbed.directory
    programs, library = directory / "stand-ins", library_directory() / "libtestbed.so"
    programs.mkdir(exist_ok=True)
    for module in _MODULES:
        shutil.copyfile(Path(__file__).with_name(f"{module}.py"), programs / f"{module}.py")

    def imported(module: str, *words: Path) -> str:
        """As a module it is compiled once."""
        code = f"import sys; sys.path.append({str(programs)!r}); import {module}; sys.exit({module}.main(sys.argv[1:]))"
        return f'exec {python} -c {shlex.quote(code)} {shlex.join(map(str, words))} "$@"\n'

    files = shlex.quote(str(programs / "lfs_files.py"))
    scripts = {
        directory / "bin" / "lfs": (
            f'case "$1" in\nfind|migrate|hsm_state) exec {python} {files} "$@";;\n'
            f"mkdir|setdirstripe|getdirstripe) {imported('lfs_dirs').rstrip()};;\n"
            f"df|osts|mdts) {imported('lfs_targets').rstrip()};;\nesac\n{imported('lfs')}"
        ),
        directory / "bin" / "ssh": _SSH.format(
            nodes="|".join(testbed.nodes),
            systems_own=_SYSTEMS_OWN.format(here=shlex.quote(str(directory / "bin")), name="ssh"),
            python=shlex.quote(sys.executable),
            directory=shlex.quote(str(directory)),
        ),
    }
    pools = imported("lctl_pools", library, directory).rstrip()
    # A client shows pools, too; only the MGS changes them.
    here = {"mds": "pool_*"} | dict.fromkeys(testbed.client_names, "pool_list")
    for node in testbed.nodes:
        root, own = testbed.node_root(node), testbed.bin(node)
        of_pools = f'case "$1" in\n{here[node]}) {pools};;\nesac\n' if node in here else ""
        scripts[own / "lctl"] = of_pools + imported("lctl", root)
        scripts[own / "lnetctl"] = imported("lnetctl", root)
        words = [sys.executable, "-m", "tarazu.sim.testbed.units", str(directory), node]
        systems_own = _SYSTEMS_OWN.format(here=shlex.quote(str(own)), name="systemctl")
        scripts[own / "systemctl"] = (
            f'case "$*" in\n*tarazu*) exec {shlex.join(words)} "$@" ;;\n*) {systems_own};;\nesac\n'
        )
    for path, text in scripts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o755)
