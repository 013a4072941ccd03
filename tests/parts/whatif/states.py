"""The part's commands, as `tests/cli/test_states.py` calls them."""

from pathlib import Path

LOG = Path(__file__).parents[2] / "data" / "traces" / "ckpt_fpp_n8_s8.darshan"
STUDIES = {"whatif": f"{LOG} --osts 4"}
