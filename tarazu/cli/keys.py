"""Create the CURVE keys with which the daemons know one another:

    tarazu keys create                     all three pairs into keys.directory of the configuration
    tarazu keys create --directory DIR oss

mdsd needs server.key, oss.pub and client.pub; an OSS oss.key and server.pub; a client client.key and
server.pub.
Secret keys (.key) must be readable by their daemon alone. An existing key is never replaced without --force.
"""

from __future__ import annotations

import argparse

from tarazu import config
from tarazu.cli.output import common_options, print_json
from tarazu.wire import keys


def configure(parser: argparse.ArgumentParser) -> None:
    sub = parser.add_subparsers(dest="action", required=True, metavar="create")
    create = sub.add_parser("create", help="make key pairs", parents=[common_options()])
    create.add_argument("role", nargs="*", choices=[*keys.ROLES, []], help="default: all three")
    create.add_argument("--directory", help="where to (default: keys.directory)")
    create.add_argument(
        "--force", action="store_true", help="replace existing keys: every peer needs the new ones"
    )
    create.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    directory = options.directory or config.load(options.config).keys.directory
    made = [
        path for role in options.role or keys.ROLES for path in keys.create(directory, role, options.force)
    ]
    if options.json:
        print_json([str(path) for path in made])
    else:
        for path in made:
            print(path)
    return 0
