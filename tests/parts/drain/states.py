"""The part's commands, as `tests/cli/test_states.py` calls them."""

ARGUMENTS = {"change drain": "--advise"}
