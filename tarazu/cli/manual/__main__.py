"""Write the man pages and bash's completion: `python -m tarazu.cli.manual DIR`.

DIR/man/man1/tarazu.1, tarazu-run.1 …    the commands
DIR/man/man5/tarazu.toml.5               the settings
DIR/man/man8/tarazu-mdsd.8 …             the daemons
DIR/bash-completion/completions/tarazu
"""

from __future__ import annotations

import sys
from pathlib import Path

from tarazu.cli.manual import completion, pages


def write(directory: Path) -> list[Path]:
    """All of them below `directory`, as below /usr/share; what was written. Raises OSError."""
    texts = {f"man/man{name.rpartition('.')[2]}/{name}": text for name, text in pages.all_pages().items()}
    texts["bash-completion/completions/tarazu"] = completion.script()
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [directory / name for name in texts]


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    for path in write(Path(sys.argv[1])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
