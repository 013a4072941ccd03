"""`libtarazu.so` built for a sanitizer, and what a process needs to run under it."""

from __future__ import annotations

import subprocess
from pathlib import Path

PRELOAD = Path(__file__).parent.parent.parent / "preload"
OPTIONS = {
    "address": ("-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"),
    "thread": ("-fsanitize=thread",),
}
RUNTIMES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}


def library(kind: str, directory: Path) -> str:
    """Compile all of the library; the value for LD_PRELOAD, the runtime first. `kind`: a key of OPTIONS.

    A finding is written to the file `<directory>/found.<pid>`.
    """
    out = directory / "libtarazu.so"
    common = "-shared -fPIC -O1 -g -std=gnu11 -fvisibility=hidden -U_FORTIFY_SOURCE -fno-builtin".split()
    linking = "-fno-delete-null-pointer-checks -Wl,-z,now -Wl,-z,nodelete -ldl".split()
    linking.append(f"-Wl,--version-script={PRELOAD / 'newer.map'}")
    # The runtime looks at the loader's list before it can bear calls of what is compiled for it.
    sources = [str(p) for p in sorted(PRELOAD.rglob("*.c")) if p.name != "loader.c"]
    reports = [str(Path(__file__).parent / "programs" / "report.c"), f'-DREPORTS="{directory}/found"']
    subprocess.run(
        ["gcc", f"-I{PRELOAD}", *common, *OPTIONS[kind], *sources, *reports, "-o", str(out), *linking],
        check=True,
    )
    return " ".join([*(_runtime(name) for name in RUNTIMES[kind]), str(out)])


def _runtime(name: str) -> str:
    found = subprocess.run(
        ["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return str(Path(found).resolve())


def environment(kind: str) -> dict[str, str]:
    """What the runtime is told: findings end the program with 66."""
    common = "allocator_may_return_null=1:exitcode=66"
    if kind == "thread":
        found = f"suppressions={Path(__file__).with_name('thread.supp')}"
        return {"TSAN_OPTIONS": f"{common}:report_signal_unsafe=0:detect_deadlocks=0:{found}"}
    return {
        "ASAN_OPTIONS": f"{common}:detect_leaks=0:verify_asan_link_order=0",
        "UBSAN_OPTIONS": f"{common}:print_stacktrace=1",
    }


def findings(logs: Path) -> str:
    """The reports in which the library appears; those about other libraries are not ours to judge."""
    texts = [p.read_text(errors="replace") for p in sorted(logs.glob("found.*"))]
    return "\n".join(t for t in texts if "libtarazu" in t or "preload/" in t)
