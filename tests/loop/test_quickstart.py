"""The walk through the loop in docs/quickstart.md, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_walk_works_literally(tmp_path: Path) -> None:
    blocks = re.findall(r"```\n(.*?)```", (ROOT / "docs" / "quickstart.md").read_text(), re.DOTALL)
    walk = next(block for block in blocks if "testbed up" in block)
    script = walk.replace("/tmp/tb", str(tmp_path / "tb")).replace(". .venv/bin/activate\n", "")
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "found: exact" in done.stdout and "hit" in done.stdout
    assert not (tmp_path / "tb").exists()
