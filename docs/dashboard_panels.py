"""What each panel of Grafana's dashboards asks Prometheus, once; `dashboards.py` makes the files of it."""

from __future__ import annotations

from typing import NamedTuple

from tarazu.ost_state import NEARLY_FULL

FS = '{fs=~"$fs"}'


class Panel(NamedTuple):
    title: str
    text: str
    """What it tells, in a sentence."""
    unit: str
    """As Grafana calls it."""
    queries: tuple[tuple[str, str], ...]
    """(legend, expression)"""
    kind: str = "timeseries"
    """Or stat, or table."""
    width: int = 8
    bad: float | None = None
    """A stat at or above it is red; a negative one: below its amount."""


def _ost(name: str) -> str:
    """Of each OST, once: of two mdsds both tell of it."""
    return f"max by (fs, target) (tarazu_target_{name}{FS})"


def _oss(name: str) -> str:
    return f"max by (target) (tarazu_server_{name})"


def _over_mean(what: str) -> str:
    return f"max by (fs) ({what}) / avg by (fs) ({what})"


UNWELL = f"max by (fs, target, health) (tarazu_target_unwell{FS})"
MOVING = f"({_ost('writing_bytes_per_second')} + {_ost('reading_bytes_per_second')})"


def _rate(name: str, by: str = "") -> str:
    """A second; of all daemons together, or by a label."""
    return _over_time("rate", name, by)


def _increase(name: str, by: str = "") -> str:
    """From one point of the curve to the next."""
    return _over_time("increase", name, by)


def _over_time(function: str, name: str, by: str) -> str:
    return f"sum {f'by ({by}) ' if by else ''}({function}({name}[$__rate_interval]))"


def _ours(expression: str) -> str:
    """Of processes of all kinds, the ten of ours with the most."""
    return f"topk(10, {expression} and on (instance, job) tarazu_build_info)"


def _quantiles(name: str, by: str = "") -> tuple[tuple[str, str], ...]:
    keys = f"le, {by}" if by else "le"
    legend = f"{{{{{by}}}}} " if by else ""
    return tuple(
        (
            f"{legend}{text}",
            f"histogram_quantile({q}, sum by ({keys}) (rate({name}_bucket[$__rate_interval])))",
        )
        for text, q in (("median", 0.5), ("99 %", 0.99))
    )


STORAGE: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel(
                "OSTs",
                "OSTs that mdsd knows.",
                "none",
                (("", f"count({_ost('size_bytes')})"),),
                "stat",
                3,
            ),
            Panel(
                "Not well",
                "Dead, refusing, full, sick or silent.",
                "none",
                (("", f"count({UNWELL}) or vector(0)"),),
                "stat",
                3,
                1,
            ),
            Panel(
                "Not usable",
                "Where no new objects are made.",
                "none",
                (("", f"count({_ost('usable')} == 0) or vector(0)"),),
                "stat",
                3,
                1,
            ),
            Panel(
                "Used",
                "Of all space; of the fullest OST.",
                "percentunit",
                (
                    (
                        "all",
                        f"1 - sum({_ost('size_bytes')} * (1 - {_ost('used_ratio')}))"
                        f" / sum({_ost('size_bytes')})",
                    ),
                    ("fullest", f"max({_ost('used_ratio')})"),
                ),
                "stat",
                5,
                NEARLY_FULL,
            ),
            Panel(
                "Moved now",
                "Written and read, in the servers' last intervals.",
                "Bps",
                (
                    ("written", f"sum({_ost('writing_bytes_per_second')})"),
                    ("read", f"sum({_ost('reading_bytes_per_second')})"),
                ),
                "stat",
                6,
            ),
            Panel(
                "Promised",
                "To running steps, and not written yet.",
                "bytes",
                (("", f"sum({_ost('promised_bytes')})"),),
                "stat",
                4,
            ),
        ),
    ),
    (
        "Balance",
        (
            Panel(
                "Imbalance of fill",
                "Fullest over mean of the OSTs; 1 is even.",
                "none",
                (("{{fs}}", _over_mean(_ost("used_ratio"))),),
            ),
            Panel(
                "Imbalance of load",
                "Busiest over mean of the OSTs, by what they move; 1 is even.",
                "none",
                (("{{fs}}", _over_mean(MOVING)),),
            ),
            Panel(
                "Fill",
                "The fullest OST, the mean, the emptiest one.",
                "percentunit",
                tuple(
                    (f"{{{{fs}}}} {text}", f"{function} by (fs) ({_ost('used_ratio')})")
                    for text, function in (("fullest", "max"), ("mean", "avg"), ("emptiest", "min"))
                ),
            ),
            Panel(
                "Fullest OSTs",
                "The ten fullest.",
                "percentunit",
                (("{{target}}", f"topk(10, {_ost('used_ratio')})"),),
            ),
            Panel("Busiest OSTs", "The ten that move most.", "Bps", (("{{target}}", f"topk(10, {MOVING})"),)),
            Panel(
                "Most promised",
                "The ten OSTs with the most promised.",
                "bytes",
                (("{{target}}", f"topk(10, {_ost('promised_bytes')})"),),
            ),
        ),
    ),
    (
        "OSTs",
        (
            Panel(
                "Moved",
                "By file system.",
                "Bps",
                (
                    ("{{fs}} written", f"sum by (fs) ({_ost('writing_bytes_per_second')})"),
                    ("{{fs}} read", f"sum by (fs) ({_ost('reading_bytes_per_second')})"),
                ),
            ),
            Panel(
                "Time of one I/O",
                "Mean of the last interval: of all OSTs, and of the ten slowest.",
                "s",
                (
                    ("mean", f"avg({_ost('io_seconds')})"),
                    ("{{target}}", f"topk(10, {_ost('io_seconds')})"),
                ),
            ),
            Panel(
                "Slowest of their peers",
                "Speed over that of OSTs of the same kind; below 0.5 an OST is sick.",
                "percentunit",
                (("{{target}}", f"bottomk(10, {_ost('relative_speed_ratio')})"),),
            ),
            Panel(
                "Not well",
                "Which, and what is wrong.",
                "none",
                (("", UNWELL),),
                "table",
                12,
            ),
            Panel(
                "Where no new objects are made",
                "Which, and each reason.",
                "none",
                (("", f"max by (fs, target, reason) (tarazu_target_unusable{FS})"),),
                "table",
                12,
            ),
        ),
    ),
    (
        "Servers",
        (
            Panel(
                "Age of the newest report",
                "The ten oldest.",
                "s",
                (("{{target}}", "topk(10, min by (target) (tarazu_server_report_age_seconds))"),),
            ),
            Panel(
                "Processors",
                "Busy share, the ten busiest.",
                "percentunit",
                (("{{target}}", f"topk(10, {_oss('cpu_load_ratio')})"),),
            ),
            Panel(
                "Memory",
                "In use, page cache apart: the ten fullest.",
                "percentunit",
                (("{{target}}", f"topk(10, {_oss('memory_load_ratio')})"),),
            ),
            Panel(
                "LNet",
                "Over the highest rate seen: the ten busiest.",
                "percentunit",
                (("{{target}}", f"topk(10, {_oss('lnet_load_ratio')})"),),
            ),
            Panel(
                "Statistics that cannot be read",
                "By server.",
                "none",
                (("{{target}}", f"topk(10, {_oss('unreadable_sources')})"),),
            ),
        ),
    ),
)

ITSELF: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Now",
        (
            Panel(
                "Daemons", "That Prometheus reaches.", "none",
                (("{{version}}", "count by (version) (tarazu_build_info)"),), "stat", 4,
            ),
            Panel(
                "Switched off", "1 while the site's stop file is there.", "none",
                (("mdsd", "max(tarazu_mdsd_stopped)"), ("clientds", "sum(tarazu_clientd_stopped)")), "stat", 5, 1,
            ),
            Panel("Gate", "1 while mdsd may allocate.", "none", (("", "max(tarazu_mdsd_gate_open)"),), "stat", 6, -1),
            Panel(
                "Hits", "Share of the bytes of ended steps that lie as planned, in this period.", "percentunit",
                (("", 'sum(increase(tarazu_clientd_file_bytes_total{outcome="hit"}[$__range]))'
                  " / sum(increase(tarazu_clientd_file_bytes_total[$__range]))"),), "stat", 4,
            ),
            Panel(
                "Promises", "Allocations that stand, and their stripes.", "none",
                (("allocations", "max(tarazu_mdsd_promises)"), ("stripes", "max(tarazu_mdsd_promised_stripes)")),
                "stat", 5,
            ),
        ),
    ),
    (
        "Plans and hits",
        (
            Panel(
                "Requests to clientds", "By kind.", "reqps",
                (("{{kind}}", _rate("tarazu_clientd_requests_total", "kind")),),
            ),
            Panel(
                "Plans", "By what came of them.", "reqps",
                (("{{status}}", _rate("tarazu_clientd_plans_total", "status")),),
            ),
            Panel("Time of a plan", "mdsd's answer included.", "s", _quantiles("tarazu_clientd_plan_seconds")),
            Panel(
                "Files of ended steps", "hit: as planned; miss: not forecast; refused: Lustre did not want it.", "none",
                (("{{outcome}}", _increase("tarazu_clientd_files_total", "outcome")),),
            ),
            Panel(
                "Bytes of ended steps", "The same files.", "bytes",
                (("{{outcome}}", _increase("tarazu_clientd_file_bytes_total", "outcome")),),
            ),
            Panel("Forecasts", "Reading histories too.", "s", _quantiles("tarazu_clientd_forecast_seconds")),
            Panel(
                "What went wrong", "In clientds.", "cps",
                (
                    ("conversations", _rate("tarazu_clientd_conversations_failed_total")),
                    ("turned away", _rate("tarazu_clientd_conversations_turned_away_total")),
                    ("forecasts", _rate("tarazu_clientd_forecasts_failed_total")),
                    ("database", _rate("tarazu_clientd_database_errors_total")),
                ),
            ),
            Panel(
                "What waits", "In clientds.", "none",
                (
                    ("plans", "sum(tarazu_clientd_plans_waiting)"),
                    ("notices to mdsd", "sum(tarazu_clientd_notices_waiting)"),
                ),
            ),
        ),
    ),
    (
        "Allocations and promises",
        (
            Panel(
                "Allocations", "Answers of mdsd.", "reqps",
                (("{{status}}", _rate("tarazu_mdsd_answers_total", "status")),),
            ),
            Panel("Time of the policy", "For a batch.", "s", _quantiles("tarazu_mdsd_allocation_seconds")),
            Panel("Requests in a batch", "Allocated together.", "none", _quantiles("tarazu_mdsd_batch_requests")),
            Panel(
                "Promised", "By file system.", "bytes",
                (("{{fs}}", "sum by (fs) (max by (fs, target) (tarazu_target_promised_bytes))"),),
            ),
            Panel(
                "Promises", "Allocations, their stripes, and what waits for an answer.", "none",
                (
                    ("allocations", "max(tarazu_mdsd_promises)"),
                    ("stripes", "max(tarazu_mdsd_promised_stripes)"),
                    ("waiting", "max(tarazu_mdsd_requests_waiting)"),
                ),
            ),
            Panel(
                "Steps whose signs of life stopped", "Their promises end.", "none",
                (("", _increase("tarazu_mdsd_dead_steps_total")),),
            ),
            Panel(
                "Promises told by leaders", "To an mdsd that did not know them.", "none",
                (("", _increase("tarazu_mdsd_told_promises_total")),),
            ),
            Panel(
                "mdsd's node", "Above its limits mdsd allocates nothing.", "percentunit",
                (("processors", "max(tarazu_mdsd_cpu_load_ratio)"), ("memory", "max(tarazu_mdsd_memory_load_ratio)")),
            ),
        ),
    ),
    (
        "Daemons",
        (
            Panel(
                "Messages to mdsd", "Understood, and not.", "cps",
                (
                    ("{{socket}}", _rate("tarazu_mdsd_messages_received_total", "socket")),
                    ("{{socket}} dropped", _rate("tarazu_mdsd_messages_dropped_total", "socket")),
                ),
            ),
            Panel(
                "Refused", "Handshakes: a wrong key, or none.", "cps",
                (
                    ("mdsd {{socket}}", _rate("tarazu_mdsd_handshakes_refused_total", "socket")),
                    ("ossds", _rate("tarazu_ossd_handshakes_refused_total")),
                ),
            ),
            Panel(
                "Connections", "That stand.", "none",
                (("{{socket}}", "sum by (socket) (tarazu_mdsd_connections)"),),
            ),
            Panel("Time to read a server's statistics", "ossds.", "s", _quantiles("tarazu_ossd_collection_seconds")),
            Panel(
                "Reports", "Of ossds.", "cps", (("", _rate("tarazu_ossd_reports_sent_total")),),
            ),
            Panel(
                "Memory", "The ten largest.", "bytes",
                (("{{job}} {{instance}}", _ours("process_resident_memory_bytes")),),
            ),
            Panel(
                "Processors", "Cores, the ten busiest.", "none",
                (("{{job}} {{instance}}", _ours("rate(process_cpu_seconds_total[$__rate_interval])")),),
            ),
            Panel(
                "Descriptors", "Open over allowed, the ten highest.", "percentunit",
                (("{{job}} {{instance}}", _ours("process_open_fds / process_max_fds")),),
            ),
        ),
    ),
)  # fmt: skip
