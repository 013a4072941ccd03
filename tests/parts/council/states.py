"""The part's commands, as `tests/cli/test_states.py` calls them."""

ARGUMENTS = {"change tune": ""}
STUDIES = {"sim tune": "--none"}
ADDRESSES = ("TARAZU_PART_COUNCIL_ADDRESS",)
"""Variables of settings where nobody, or somebody who is silent, listens."""
