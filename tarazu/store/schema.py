"""The one schema of the interaction database; types and division differ between SQLite and MySQL.

plans      one per job step: who, what, when, policy, status
requests   one per allocation request of a plan (the plan's horizon rolls)
layouts    each distinct layout once, as JSON; `components` its components as columns
plan_layouts   which plans use which layouts, so that a layout goes with its last plan
files      one per expected file: names, forecast, layout, outcome
extents    the OST list of each component of a file
prepared   per user and application what its next run begins with (`tarazu.daemons.clientd.forecasts.prepared`)
writes     marks of transactions (`tarazu.store.connection`); on a server, whose answer to a commit may be lost
interaction   view: the columns of the paper's tables 1, 2, 4 and 5
"""

from __future__ import annotations

from typing import NamedTuple

VERSION = 7
APPLICATION_ID = 0x545A4442
"""`TZDB`: SQLite's application_id of our files."""


class SqlDialect(NamedTuple):
    """What differs between the databases."""

    serial: str
    """Column type of a number that the database hands out."""
    key: str
    """Column type of a number that we hand out."""
    text: str
    """Type of text of any length."""
    bytes: str
    """Type of bytes of any length."""
    short: str
    """Type of text that is indexed as a whole."""
    prefix: str
    """Length of the indexed part of a long text."""
    divide: str
    """Operator of integer division."""
    for_update: str
    """Ends a SELECT whose row nobody else may change until the transaction is over."""
    table_end: str


SQLITE = SqlDialect(
    "INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER PRIMARY KEY", "TEXT", "BLOB", "TEXT", "", "/", "", ""
)
MYSQL = SqlDialect(
    "BIGINT PRIMARY KEY AUTO_INCREMENT",
    "BIGINT PRIMARY KEY",
    "LONGTEXT",
    "LONGBLOB",
    "VARCHAR(180)",
    "(180)",
    "DIV",
    " FOR UPDATE",
    " ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
)

_PLANS = """CREATE TABLE plans (
    id {serial}, fs_name {short} NOT NULL, uid BIGINT NOT NULL, application {short} NOT NULL,
    job_id {short} NOT NULL, created_s DOUBLE PRECISION NOT NULL, policy {short} NOT NULL,
    status {short} NOT NULL, reason {text} NOT NULL, step {text} NOT NULL,
    ost_cost DOUBLE PRECISION NOT NULL, ost_cost_bound DOUBLE PRECISION NOT NULL,
    elapsed_s DOUBLE PRECISION NOT NULL, request_id {short} NOT NULL, ended_s DOUBLE PRECISION,
    bytes BIGINT NOT NULL DEFAULT 0
){table_end}"""
"""`bytes`: about what the plan and its files take (`tarazu.store.database.PLAN_BYTES`, `tarazu.store.files`)."""

_REQUESTS = """CREATE TABLE requests (
    id {serial}, plan_id BIGINT NOT NULL REFERENCES plans (id), request_id {short} NOT NULL,
    status {short} NOT NULL, reason {text} NOT NULL, policy {short} NOT NULL,
    ost_cost DOUBLE PRECISION NOT NULL, ost_cost_bound DOUBLE PRECISION NOT NULL,
    elapsed_s DOUBLE PRECISION NOT NULL, answered_s DOUBLE PRECISION NOT NULL
){table_end}"""

_LAYOUTS = (
    "CREATE TABLE layouts (id {serial}, digest {short} NOT NULL UNIQUE, layout {text} NOT NULL){table_end}"
)

_COMPONENTS = """CREATE TABLE components (
    layout_id BIGINT NOT NULL REFERENCES layouts (id), extent_id INTEGER NOT NULL,
    start_bytes BIGINT NOT NULL, end_bytes BIGINT NOT NULL, stripe_size_bytes BIGINT NOT NULL,
    stripe_count INTEGER NOT NULL, PRIMARY KEY (layout_id, extent_id)
){table_end}"""

_PLAN_LAYOUTS = """CREATE TABLE plan_layouts (
    plan_id BIGINT NOT NULL REFERENCES plans (id), layout_id BIGINT NOT NULL REFERENCES layouts (id),
    PRIMARY KEY (plan_id, layout_id)
){table_end}"""

_FILES = """CREATE TABLE files (
    id {key}, plan_id BIGINT NOT NULL REFERENCES plans (id),
    file_key {text} NOT NULL, precise {text} NOT NULL, loose {text} NOT NULL, is_volatile INTEGER NOT NULL,
    mpi_rank INTEGER NOT NULL, nth_precise BIGINT NOT NULL, nth_loose BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL, at_s DOUBLE PRECISION NOT NULL, writers INTEGER NOT NULL,
    contiguous INTEGER NOT NULL, method {short} NOT NULL, layout_id BIGINT,
    request_id {short} NOT NULL, request_index INTEGER NOT NULL,
    outcome {short} NOT NULL, found {short} NOT NULL, actual_key {text} NOT NULL, actual_bytes BIGINT,
    actual_layout {text} NOT NULL, left_because {short} NOT NULL DEFAULT ''
){table_end}"""

_EXTENTS = """CREATE TABLE extents (
    file_id BIGINT NOT NULL REFERENCES files (id), extent_id INTEGER NOT NULL, ost_list {text} NOT NULL,
    PRIMARY KEY (file_id, extent_id)
){table_end}"""

_PREPARED = """CREATE TABLE prepared (
    uid BIGINT NOT NULL, fs_name {short} NOT NULL, application {short} NOT NULL, body {bytes} NOT NULL,
    made_s DOUBLE PRECISION NOT NULL, PRIMARY KEY (uid, fs_name, application)
){table_end}"""

_WRITES = "CREATE TABLE writes (mark {short} PRIMARY KEY, at_s DOUBLE PRECISION NOT NULL){table_end}"

_END = "CASE WHEN c.end_bytes < 0 OR c.end_bytes > f.size_bytes THEN f.size_bytes ELSE c.end_bytes END"

_INTERACTION = f"""CREATE VIEW interaction AS SELECT
    f.plan_id AS plan_id, f.id AS file_id, f.file_key AS file_name, f.size_bytes AS file_size,
    c.extent_id AS extent_id, c.start_bytes AS extent_start, {_END} AS extent_end,
    131072 * (({_END} - c.start_bytes + 131072 * c.stripe_count - 1) {{divide}} (131072 * c.stripe_count))
        AS stripe_size,
    c.stripe_count AS stripe_count, f.mpi_rank AS mpi_rank, COALESCE(e.ost_list, '') AS ost_list
FROM files f JOIN components c ON c.layout_id = f.layout_id
    LEFT JOIN extents e ON e.file_id = f.id AND e.extent_id = c.extent_id
WHERE c.stripe_count > 0 AND (c.start_bytes < f.size_bytes OR c.extent_id = 1)"""
"""Stripe sizes by the paper's equations 2 and 3; a file's last extent ends at its size."""

TABLES = (
    *("plans", "requests", "layouts", "components", "plan_layouts", "files", "extents", "prepared", "writes"),
    *("interaction", "tarazu_schema"),
)
"""And the view."""

_STATEMENTS = (
    _PLANS,
    "CREATE INDEX plans_by_application ON plans (fs_name, uid, application, id)",
    "CREATE INDEX plans_by_user ON plans (uid, id, bytes)",
    _REQUESTS,
    "CREATE INDEX requests_by_plan ON requests (plan_id)",
    _LAYOUTS,
    _COMPONENTS,
    _PLAN_LAYOUTS,
    "CREATE INDEX plans_by_layout ON plan_layouts (layout_id)",
    _FILES,
    "CREATE INDEX files_by_plan ON files (plan_id)",
    "CREATE INDEX files_by_key ON files (file_key{prefix})",
    "CREATE INDEX files_by_actual_key ON files (actual_key{prefix})",
    _EXTENTS,
    _PREPARED,
    _WRITES,
    _INTERACTION,
    "CREATE TABLE tarazu_schema (version INTEGER NOT NULL, last_file_id BIGINT NOT NULL){table_end}",
    f"INSERT INTO tarazu_schema (version, last_file_id) VALUES ({VERSION}, 0)",
)


def statements(dialect: SqlDialect) -> tuple[str, ...]:
    """DDL, in order; the version comes last. A component's end is −1 for EOF: 2⁶⁴−1 is no signed integer."""
    return tuple(s.format(**dialect._asdict()) for s in _STATEMENTS)
