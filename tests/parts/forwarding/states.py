"""The part's commands, as `tests/cli/test_states.py` calls them."""

from pathlib import Path

DATA = Path(__file__).parents[2] / "data"
LOG = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
IOR = DATA / "ior" / "4.0.0-posix-unique.json"
STUDIES = {
    "history phases": f"{LOG}",
    "sim forward allocate": "{here}/jobs.toml",
    "sim forward study": "--out {here}/forward --kind none",
    "sim benchmarks import": f"{IOR} --file {{here}}/benchmarks",
    "sim benchmarks plan": f"{LOG} --nodes 1",
    "sim benchmarks simulate": f"{LOG} --nodes 1 --file {{here}}/simulated --numbers 1 --repetitions 1",
    "sim benchmarks show": "--file {here}/none",
}
