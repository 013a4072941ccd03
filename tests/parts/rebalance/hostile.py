"""The part's reader of a file without a case in `tests/hostile`, and why."""

LEFT = {"tarazu.parts.rebalance.orders:throttle": "the kernel's"}
