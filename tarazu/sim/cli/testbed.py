"""An emulated Lustre on one machine, with tarazu's real daemons, without root and without Lustre.

tarazu sim testbed up /tmp/tb                     1 MDS, 7 OSSs x 5 OSTs x 10 GiB, and the daemons
tarazu sim testbed exec /tmp/tb -- dd if=/dev/zero of=/tmp/tb/clients/client1/mnt/f bs=1M count=100
tarazu sim testbed exec /tmp/tb --on mds -- lctl pool_new lustre.fast
tarazu sim testbed usage /tmp/tb                  bytes per OST and OSS, max/mean
tarazu sim testbed kill /tmp/tb oss2              a power cut; tarazu sim testbed revive /tmp/tb oss2
tarazu sim testbed down /tmp/tb

eval "$(tarazu sim testbed env /tmp/tb)"          this shell becomes a client; its mount is $TESTBED_MOUNT. In it
                                                  `ssh mds`, `ssh oss1 COMMAND` go to the other nodes
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tarazu.cli.output import common_options, size
from tarazu.errors import BadInput, Unavailable
from tarazu.sim.testbed import testbed as beds
from tarazu.sim.testbed import units
from tarazu.sim.testbed.configuration import configure as write_configuration
from tarazu.sim.testbed.daemons import wait_until_ready
from tarazu.sim.testbed.usage import metadata_time
from tarazu.units import human_bytes


def _slow(text: str) -> tuple[int, float]:
    index, _, factor = text.partition("=")
    try:
        return int(index), float(factor)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected INDEX=FACTOR, found {text!r}") from None


def _fill(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected shares such as 0,0.1,0.2, found {text!r}") from None


def _pool(text: str) -> tuple[str, list[int]]:
    name, _, osts = text.partition("=")
    try:
        return name, [int(part) for part in osts.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=INDEX,INDEX,..., found {text!r}") from None


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(
        title="commands", dest="testbed_command", required=True, metavar="COMMAND"
    )

    def command(
        name: str, handler: Callable[[argparse.Namespace], int], text: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text, parents=[common_options()])
        added.add_argument("directory", metavar="DIR", type=Path, help="the testbed's directory")
        added.set_defaults(handler=handler)
        return added

    _add_up(command("up", _up, "make a testbed; start its servers and tarazu's daemons"))
    down = command("down", _down, "stop a testbed and remove it; does nothing if it does not exist")
    down.add_argument("--keep", action="store_true", help="leave the files")
    status = command("status", _status, "what it is and which of its processes run")
    usage = command("usage", _usage, "bytes per OST and OSS, from the files' actual layouts")
    kill = command(
        "kill",
        _kill,
        "cut the power of a server, so that what has to reach its targets waits; or stop an LNet router",
    )
    kill.add_argument("node", metavar="NODE", help="such as oss2, router1")
    kill.add_argument(
        "--notice",
        type=float,
        default=0.0,
        metavar="S",
        help="when the MDS notices, or the servers a router's end (default: at once)",
    )
    command("revive", _revive, "start a server or router that was killed").add_argument(
        "node", metavar="NODE", help="such as oss2, router1"
    )
    execute = command("exec", _exec, "run a program on one of its nodes")
    execute.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="-- PROGRAM ...", help="program and arguments"
    )
    environment = command("env", _env, "print the environment of a node as shell commands")
    for each in (execute, environment):
        each.add_argument(
            "--on",
            metavar="NODE",
            default="",
            help="mds (the MGS's node too), oss1, router1, client2 (default: client1)",
        )
    for each in (status, usage, down, environment):
        each.add_argument("--json", action="store_true", help="print JSON")


def _add_up(up: argparse.ArgumentParser) -> None:
    up.add_argument("--osss", type=int, default=beds.OSSS, metavar="N", help="servers (default %(default)s)")
    up.add_argument(
        "--osts-per-oss",
        type=int,
        default=beds.OSTS_PER_OSS,
        metavar="N",
        help="targets of each (default %(default)s)",
    )
    up.add_argument(
        "--ost-size", type=size, default=beds.OST_BYTES, metavar="SIZE", help="of each target (default 10G)"
    )
    up.add_argument(
        "--routers", type=int, default=0, metavar="N", help="LNet routers between clients and servers"
    )
    up.add_argument("--clients", type=int, default=1, metavar="N", help="client nodes (default 1)")
    up.add_argument(
        "--interval", type=float, default=1.0, metavar="S", help="statistics interval (default 1 s)"
    )
    up.add_argument("--fill", type=_fill, metavar="A,B,...", help="used share of each target before, 0-1")
    up.add_argument(
        "--slow",
        type=_slow,
        action="append",
        default=[],
        metavar="INDEX=FACTOR",
        help="a target that is FACTOR times slower (below 1: that share of the speed); may be repeated",
    )
    up.add_argument("--mdts", type=int, default=1, metavar="N", help="metadata targets (default 1)")
    up.add_argument(
        "--slow-mdt",
        type=_slow,
        action="append",
        default=[],
        metavar="INDEX=FACTOR",
        help="one of them that is FACTOR times slower; may be repeated",
    )
    up.add_argument(
        "--pool", type=_pool, action="append", default=[], metavar="NAME=I,J,...", help="an OST pool"
    )
    up.add_argument(
        "--layout",
        metavar="LAYOUT",
        help="default layout: COUNT[@SIZE], or START-END:COUNT[@SIZE], ... such as '0-128M:1, 128M-EOF:8'",
    )
    up.add_argument("--real-data", action="store_true", help="store what is written (default: sizes only)")
    up.add_argument("--no-daemons", action="store_true", help="do not start tarazu's daemons")
    up.add_argument("--seed", type=int, default=0, metavar="N", help="of Lustre's allocator (default 0)")
    up.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    handler: Callable[[argparse.Namespace], int] = arguments.handler
    return handler(arguments)


def _print(arguments: argparse.Namespace, value: Any, text: str) -> int:
    print(json.dumps(value, indent=2) if arguments.json else text)
    return 0


def _up(arguments: argparse.Namespace) -> int:
    made = beds.up(
        arguments.directory,
        osss=arguments.osss,
        osts_per_oss=arguments.osts_per_oss,
        ost_bytes=arguments.ost_size,
        clients=arguments.clients,
        interval_s=arguments.interval,
        fill=arguments.fill,
        slow=dict(arguments.slow),
        sparse=not arguments.real_data,
        seed=arguments.seed,
        default_layout=arguments.layout,
        pools=dict(arguments.pool),
        routers=arguments.routers,
        mdts=arguments.mdts,
        slow_mdts=dict(arguments.slow_mdt),
    )
    write_configuration(made)
    if not arguments.no_daemons:
        made.start_daemons()
        wait_until_ready(made)
    status = beds.status(made.directory)
    return _print(arguments, status, _describe(status))


def _down(arguments: argparse.Namespace) -> int:
    there = beds.down(arguments.directory, keep=arguments.keep)
    return _print(
        arguments, {"removed": there}, f"{arguments.directory}: {'down' if there else 'no testbed there'}"
    )


def _describe(status: dict[str, Any]) -> str:
    several = "s" if status["mdts"] > 1 else ""
    lines = [
        f"{status['directory']}: file system {status['fs_name']}, {status['mdts']} MDT{several}, "
        f"{status['osss']} OSSs, {status['osts']} OSTs of "
        f"{human_bytes(status['ost_bytes'])}, {'sparse' if status['sparse'] else 'real'} data, "
        f"{status['files']} files"
    ]
    pairs = zip(status["clients"], status["mounts"], strict=True)
    lines += [f"  {name:<24} {mount}" for name, mount in pairs]
    lines += [f"  {name:<24} {'routes' if up else 'down'}" for name, up in status["routers"].items()]
    for name, pid in status["processes"].items():
        lines.append(f"  {name:<24} {'pid ' + str(pid) if pid else 'not running'}")
    lines += [f"  OST {index:<20} {', '.join(names)}" for index, names in status["flags"].items()]
    lines += [f"  OST {index:<20} {human_bytes(speed)}/s" for index, speed in status["speeds"].items()]
    if status["crashed"]:
        lines.append(f"  a real MDS would be down: {status['crashed'].strip()}")
    return "\n".join(lines)


def _status(arguments: argparse.Namespace) -> int:
    status = beds.status(arguments.directory)
    return _print(arguments, status, _describe(status))


def _kill(arguments: argparse.Namespace) -> int:
    testbed = beds.open_testbed(arguments.directory)
    kill = testbed.kill_router if arguments.node in testbed.router_names else testbed.kill_oss
    kill(arguments.node, notice_s=arguments.notice)
    return 0


def _revive(arguments: argparse.Namespace) -> int:
    testbed = beds.open_testbed(arguments.directory)
    revive = testbed.revive_router if arguments.node in testbed.router_names else testbed.revive_oss
    revive(arguments.node)
    for unit in units.enabled(testbed, arguments.node):
        units.start(testbed, arguments.node, unit)
    return 0


def _usage(arguments: argparse.Namespace) -> int:
    testbed = beds.open_testbed(arguments.directory)
    used = testbed.usage()
    lines = [f"{used.files} files, {human_bytes(used.total_bytes)}"]
    for name in testbed.oss_names:
        mine = [i for i, oss in enumerate(testbed.oss_of_ost) if oss == name]
        cells = "  ".join(f"{i}: {human_bytes(used.ost_bytes[i])}" for i in mine)
        lines.append(f"  {name:<8}{human_bytes(used.oss_bytes[name]):>12}   {cells}")
    lines.append(
        f"OST cost {used.ost_cost:.3f}   OSS cost {used.oss_cost:.3f}   fill max/mean {used.fill_cost:.3f}"
    )
    value = {name: getattr(used, name) for name in used.__struct_fields__}
    if testbed.config.mdts > 1:
        took = metadata_time(testbed)
        for index, (creates, seconds) in enumerate(zip(took.creates, took.seconds, strict=True)):
            lines.append(f"  MDT {index:<4}{creates:>10} created   {seconds:.3f} s")
        lines.append(
            f"MDTs one operation after another: {took.completion_s:.3f} s, at best {took.bound_s:.3f} s"
        )
        value["metadata"] = {name: getattr(took, name) for name in took.__struct_fields__}
    return _print(arguments, value, "\n".join(lines))


def _exec(arguments: argparse.Namespace) -> int:
    program, on = arguments.program, arguments.on
    if program[:1] == ["--on"] and len(program) > 1:  # behind DIR, where argparse takes it for the program's
        on, program = program[1], program[2:]
    program = program[1:] if program[:1] == ["--"] else program
    if not program:
        raise BadInput("tarazu sim testbed exec", "a program after --")
    testbed = beds.open_testbed(arguments.directory)
    environment = testbed.clean_environment() | testbed.node_environment(on or testbed.client_names[0])
    if on in testbed.dead():
        revive = f"tarazu sim testbed revive {shlex.quote(str(testbed.directory))} {on}"
        raise Unavailable(f"{on}: no route to host: its power is off ({revive})")
    sys.stdout.flush()
    program[0] = shutil.which(program[0], path=environment["PATH"]) or program[0]
    try:
        status = subprocess.run(program, env=environment, check=False).returncode
    except (FileNotFoundError, PermissionError) as error:
        print(f"tarazu: {program[0]}: {error.strerror}", file=sys.stderr)
        return 127 if isinstance(error, FileNotFoundError) else 126
    except subprocess.SubprocessError as error:
        print(f"tarazu: {program[0]}: {error}", file=sys.stderr)
        return 1
    return status if status >= 0 else 128 - status


def _env(arguments: argparse.Namespace) -> int:
    testbed = beds.open_testbed(arguments.directory)
    environment = testbed.node_environment(arguments.on or testbed.client_names[0])
    lines = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    if strange := [name for name in beds.OF_A_NODE if name not in environment]:
        lines.insert(0, f"unset {' '.join(strange)}")
    return _print(arguments, environment, "\n".join(lines))
