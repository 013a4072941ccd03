"""The part's commands, as `tests/cli/test_states.py` calls them."""

ARGUMENTS = {
    "change list": "",
    "change show": "1",
    "change score": "",
    "change approve": "1 --reason because",
    "change apply": "1",
    "change undo": "--all",
    "change log": "",
    "change stop": "",
}
