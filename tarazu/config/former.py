"""Settings of earlier versions, and what to know of each instead."""

from __future__ import annotations

_NO_EFFECT = "it has no effect"
_ONE = "there is one; those to compare with are the simulator's"
_FOR_TESTS = "it is for tests and testbeds: --root of the daemons"


def _below(name: str) -> str:
    return f"it is {name} below state.directory"


_NAMED = "it is the host's, or --name of the daemon"
_OFTEN = "it is 10 s, or ossd.interval_s where that is shorter"
_IN_PATH = "it is looked for in PATH, the system's directories first"
FORMER = {
    "ossd": {"name": _NAMED, "root": _FOR_TESTS, "lnetctl": _IN_PATH, "state": _below("tarazu-routers")},
    "mdsd": {
        **dict.fromkeys(("speed_half_life_s", "speed_forget_s", "user_requests_per_s"), _NO_EFFECT),
        "root": _FOR_TESTS,
        "state": _below("tarazu/mdsd"),
    },
    "allocate": {
        **dict.fromkeys(
            ("fill", "time", "promise", "idle_load", "oss_balance", "latency", "degraded", "ceiling", "seed"),
            _NO_EFFECT,
        ),
        "policy": _ONE,
        "oss_load": "it is 0.5",
        "fill_tolerance": "it is 0.17, as Lustre's qos_threshold_rr",
    },
    "clientd": {
        "name": _NAMED,
        "keep_plans": _NO_EFFECT,
        "user_plan_bytes": "it is 512 MiB",
        "forecast_s": "it is 60 s",
        "forecast_bytes": "it is 1 GiB",
    },
    "layout": dict.fromkeys(
        ("shared_stripe_bytes", "private_stripe_bytes", "least_object_bytes"), _NO_EFFECT
    ),
    "predict": {"model": _ONE, "runs": "it is 10", "keep_runs": "it is 100"},
    "run": {
        "history_dir": "it is the folder `history` of run.state_dir",
        "send_map": "maps are sent where run.gather is auto",
        "spool_limit": "it is the least of 256 MiB and 1 % of a node's memory",
    },
    "forwarding": {
        **dict.fromkeys(("gain", "rules_per_minute"), _NO_EFFECT),
        "policy": _ONE,
        "rules": "it is 64",
        "interval_s": _OFTEN,
        "mapping": _below("tarazu-mapping/mapping.json"),
    },
    "tune": {
        "learner": _ONE,
        "lctl": _IN_PATH,
        "state": _below("tarazu-announcer"),
        "knowledge": _below("tarazu-council"),
        "interval_s": "it is 1 s",
        "dwell_s": "it is 10 s",
        "worse": "it is 0.2",
        "silent_s": "it is 30 s",
    },
    "pool": {
        "audit_log": "its lines are in its log",
        "full": "it is 0.95",
        "lctl": _IN_PATH,
        "interval_s": "it is ossd.interval_s",
        "state": _below("tarazu-pool"),
    },
    "bursts": {"answer_s": "it is 0.02 s", "wait_s": "it is 30 s", "directory": _below("tarazu-burstd")},
    "page": {
        "interval_s": _OFTEN,
        "keys": "TARAZU_KEYS_DIRECTORY in its unit says where its key is",
        "results": _below("tarazu-page/results"),
        "state": _below("tarazu-page"),
    },
}
"""Settings of earlier versions → why they are none any more: passed over, with a line in the daemons' logs. An upgrade
must not leave them down."""
