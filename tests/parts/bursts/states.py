"""The part's commands, as `tests/cli/test_states.py` calls them."""

ARGUMENTS = {
    "change bursts report": "",
    "change bursts nodes": "",
    "change bursts plugin": "library",
    "change bursts remap": "",
}
STUDIES = {"sim bursts": "--only none"}
