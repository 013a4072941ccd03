"""Run a daemon with what its unit leaves it: `python -m tests.daemons.confined UNIT MODULE [...]`.

No more capabilities than the unit's, no new privileges, no memory that is writable and executable (the kernel's own
rule, Linux 6.3 and later), no core.
"""

from __future__ import annotations

import configparser
import ctypes
import os
import shutil
import sys
from pathlib import Path

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
"""linux/prctl.h"""


def main() -> None:
    unit, module, *arguments = sys.argv[1:]
    parsed = configparser.ConfigParser(interpolation=None, strict=False)
    parsed.read(unit)
    service = parsed["Service"]
    kept = [name.removeprefix("cap_") for name in service.get("CapabilityBoundingSet", "").lower().split()]
    if service.get("MemoryDenyWriteExecute") == "yes":
        ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
    setpriv = shutil.which("setpriv")
    assert setpriv
    bounding = ",".join(["-all", *(f"+{name}" for name in kept)])
    command = [
        setpriv,
        "--no-new-privs",
        f"--bounding-set={bounding}",
        f"--inh-caps={bounding}",
        sys.executable,
    ]
    os.execv(setpriv, [*command, "-m", module, *arguments])


if __name__ == "__main__":
    assert Path(sys.argv[1]).exists()
    main()
