"""What is Lustre's own in the levers of parameters: on real files, with answers of lctl as captured."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.errors import Unavailable
from tarazu.parts.changes import engine
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.done import Done
from tarazu.parts.council.agent import agent_of, in_force
from tarazu.parts.council.levers.client import HYBRID
from tarazu.sim.testbed import lctl as stand_in
from tarazu.sim.testbed import tunables
from tests.parts.changes.case import Here
from tests.parts.changes.parameters import wish

IO = "ost.OSS.ost_io"
RPCS, PAGES, AHEAD = "max_rpcs_in_flight", "max_pages_per_rpc", "max_read_ahead_mb"
LEVERS = ("nrs", RPCS, PAGES, AHEAD)


class Node:
    """An OSS, or a client of two OSTs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.program = Here("lctl", stand_in.main, root)

    def agent(self, levers: tuple[str, ...] = LEVERS) -> Agent:
        settings = config.override(
            config.Settings(state=config.State(f"{self.root}/state")), "part.council", levers=levers
        )
        agent = agent_of(settings, root=str(self.root), stopped=lambda: "")
        for lever in agent.engine.levers.values():
            lever.lctl.program = self.program  # type: ignore[attr-defined]
        return agent

    def make(self, agent: Agent | None = None, **values: str) -> Done:
        changes = tuple(wish(lever, value) for lever, value in values.items())
        return (agent or self.agent()).follow(Plan(changes), "apply", "nobody wants it any more")

    def set(self, name: str, value: str) -> None:
        """By an administrator."""
        answer = self.program.call(("set_param", f"{name}={value}"))
        assert answer.status == 0, answer

    def shown(self, lever: str) -> str:
        return in_force(self.agent().engine.levers[lever])

    def now(self) -> dict[str, str]:
        places = [self.root / stand_in.IO, self.root / "sys/fs/lustre/osc", self.root / "sys/fs/lustre/llite"]
        return {str(p): p.read_text() for place in places for p in place.rglob("*") if p.is_file()}


def why(done: Done) -> str:
    assert not done.set
    return " ".join(failure.why for failure in (*done.failed, *done.refused))


@pytest.fixture(autouse=True)
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOOK_S", 0.0)


@pytest.fixture
def oss(tmp_path: Path) -> Iterator[Node]:
    tunables.make_oss(tmp_path)
    yield Node(tmp_path)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Node]:
    tunables.make_client(tmp_path, "lustre", 0, 2)
    yield Node(tmp_path)


def test_all_of_a_policy_comes_back_exactly(oss: Node) -> None:
    oss.set(f"{IO}.nrs_policies", "orr")
    oss.set(f"{IO}.nrs_orr_quantum", "reg_quantum:32")
    oss.set(f"{IO}.nrs_orr_offset_type", "hp_offset_type:logical")
    oss.set(f"{IO}.nrs_orr_supported", "reads_and_writes")
    before = oss.now()
    assert oss.make(nrs="crrn 32").set and oss.shown("nrs") == "crrn 32"
    assert oss.make(nrs="trr 64").set and not oss.make(nrs="trr 64").set
    assert oss.make().restored and oss.now() == before


def test_queues_with_policies_of_their_own_are_restored_each(oss: Node) -> None:
    oss.set(f"{IO}.nrs_policies", "crrn hp")
    oss.set(f"{IO}.nrs_crrn_quantum", "hp_quantum:5")
    before = oss.now()
    assert oss.make(nrs="orr 64").set
    assert oss.make().restored and oss.now() == before


def test_a_quantum_that_is_not_shown_is_restored_all_the_same(oss: Node) -> None:
    """Whose other queue somebody has changed: Lustre shows `?`, and it was taken for what had been there."""
    oss.set(f"{IO}.nrs_policies", "crrn")
    oss.set(f"{IO}.nrs_crrn_quantum", "16")
    oss.make(nrs="crrn 32")
    oss.set(f"{IO}.nrs_policies", "fifo hp")
    oss.make()
    facts = stand_in.Nrs(str(oss.root)).facts
    assert (facts["reg", "quantum"], facts["hp", "policy"]) == ("16", "fifo")


def test_a_policy_that_is_still_stopping_leaves_what_was_there(oss: Node) -> None:
    before = oss.now()
    (oss.root / "nrs" / "draining").write_text("trr")
    assert "Resource temporarily unavailable" in why(oss.make(nrs="trr 64")) and oss.now() == before


def test_what_limits_on_purpose_is_left_alone(oss: Node) -> None:
    for policy in ("delay", "tbf nid", "crrn reg"):
        oss.set(f"{IO}.nrs_policies", policy)
        before = oss.now()
        assert "left alone" in why(oss.make(nrs="crrn 8")) and oss.now() == before


def test_an_oss_whose_service_started_anew_is_set_anew(oss: Node) -> None:
    """All its OSTs went to the other server and came back: nobody set FIFO."""
    oss.make(nrs="crrn 8")
    tunables.make_oss(oss.root)
    assert oss.make(nrs="crrn 8").set and oss.make().restored and oss.shown("nrs") == "fifo"


def test_what_cannot_be_read_is_not_taken_for_absent(oss: Node) -> None:
    policies = oss.root / stand_in.IO / "nrs_policies"
    policies.write_text("regular_requests:\n")
    with pytest.raises(Unavailable, match="one of them started"):
        oss.shown("nrs")
    policies.unlink()
    policies.mkdir()
    with pytest.raises(Unavailable, match=r"regular file|directory"):
        oss.shown("nrs")


def test_thresholds_of_hybrid_io_are_set_and_come_back(client: Node) -> None:
    before, agent = client.now(), client.agent(HYBRID)
    assert [in_force(agent.engine.levers[name]) for name in HYBRID] == ["8388608", "2097152"]
    wanted = {HYBRID[0]: "33554432", HYBRID[1]: "2147483648"}
    assert len(client.make(agent, **wanted).set) == 2 and not client.make(agent, **wanted).set
    assert [in_force(agent.engine.levers[name]) for name in HYBRID] == [*wanted.values()]
    assert len(client.make(agent).restored) == 2 and client.now() == before


def test_thresholds_without_hybrid_io_are_left_alone(client: Node) -> None:
    """As on 2.16 unless somebody switches it on: they would be tried for nothing."""
    client.set("llite.*.hybrid_io", "0")
    before = client.now()
    assert "expected hybrid_io 1" in why(client.make(client.agent(HYBRID), **{HYBRID[0]: "2097152"}))
    assert client.now() == before


def test_only_listed_values_are_ever_set(client: Node) -> None:
    agent = client.agent((f"{RPCS}=8 | 16",))
    done = client.make(agent, **{RPCS: "32", AHEAD: "64"})
    assert "expected one of: 8, 16, found '32'" in why(done) and "one of: nothing" in why(done)
    client.make(**{AHEAD: "64"})
    assert client.make(agent).restored and client.shown(AHEAD) == "256", "listed no more, and restored"


def test_a_value_that_would_raise_max_dirty_mb_is_not_set(client: Node) -> None:
    """Lustre raises it by itself, and nothing lowers it again."""
    client.set("osc.*OST0001*.max_dirty_mb", "60")
    before = client.now()
    assert "max_dirty_mb (60)" in why(client.make(**{RPCS: "16"})) and client.now() == before


def test_levers_that_hang_on_one_another_are_restored_in_an_order_that_fits(client: Node) -> None:
    """With 32 in flight 1024 pages do not fit: that comes second."""
    client.set("osc.*.max_dirty_mb", "40")
    before = client.now()
    client.make(**{PAGES: "256"})
    client.make(**{PAGES: "256", RPCS: "32"})
    assert (client.shown(PAGES), client.shown(RPCS)) == ("256", "32")
    assert len(client.make().restored) == 2 and client.now() == before


def test_sizes_of_reads_and_writes_that_differ_are_left_alone(client: Node) -> None:
    osc = client.root / f"sys/fs/lustre/osc/lustre-OST0000-osc-{tunables.instance(0)}"
    (osc / "max_mb_per_rpc_read").write_text("4\n")
    (osc / "max_mb_per_rpc_write").write_text("1\n")
    assert "left alone" in why(client.make(**{PAGES: "256"}))


def test_another_value_than_was_set_is_a_failure(client: Node) -> None:
    """Lustre 2.17 takes half of the memory where it is told more."""
    before = client.now()
    done = client.make(client.agent((f"{AHEAD}=64 | 40000",)), **{AHEAD: "40000"})
    assert "expected '40000' to be in force after it was set, found '32768'" in why(done)
    assert client.now() == before


def test_an_error_counts_although_the_last_one_of_the_call_was_taken(
    client: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """lctl's status is the last parameter's."""
    taken = stand_in.tunable

    def refuses(path: str, value: str) -> str:
        if "OST0000" in path and value == "16":
            raise stand_in.No(errno.ERANGE)
        return taken(path, value)

    monkeypatch.setattr(stand_in, "tunable", refuses)
    before = client.now()
    assert "Numerical result out of range" in why(client.make(**{RPCS: "16"})) and client.now() == before


def test_a_file_system_that_is_mounted_later_is_set_too_and_restored(client: Node) -> None:
    client.make(**{AHEAD: "64"})
    tunables.make_client(client.root, "scratch", 3, 1)
    client.set("llite.scratch-*.max_read_ahead_mb", "128")
    assert client.make(**{AHEAD: "64"}).set and client.shown(AHEAD) == "64"
    assert client.make().restored and client.shown(AHEAD) == "256, 128"


def test_what_is_unmounted_is_nobodys_and_what_comes_under_its_name_is_new(client: Node) -> None:
    client.make(**{AHEAD: "64"})
    llite = client.root / "sys/fs/lustre/llite"
    llite.rename(client.root / "gone")
    assert not client.make(**{AHEAD: "64"}).left
    shutil.copytree(client.root / "gone", llite)
    client.set("llite.*.max_read_ahead_mb", "300")  # as it is mounted again, with an option of its own
    client.make()
    assert client.shown(AHEAD) == "300", "it was set to what another mount had before"


def test_parameters_are_found_where_2_12_has_them(tmp_path: Path) -> None:
    mount, node = "ffff88810f466800", Node(tmp_path)
    for place, name, value in (
        (f"proc/fs/lustre/osc/lustre-OST0000-osc-{mount}", PAGES, "1024"),
        (f"sys/kernel/debug/lustre/llite/lustre-{mount}", AHEAD, "64"),
    ):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / name).write_text(f"{value}\n")
        assert node.shown(name) == value


PAIR = "osc_rpcs"


@pytest.fixture
def paired(client: Node) -> Agent:
    return client.agent((f"{PAIR}=1024x8 | 16x128 | 8x32 | 40x32",))


def test_both_of_a_pair_are_set_the_smaller_first(client: Node, paired: Agent) -> None:
    """Else 128 RPCs of 1,024 pages would be possible for a moment, for which Lustre raises max_dirty_mb for good."""
    dirty = [text for name, text in client.now().items() if name.endswith("max_dirty_mb")]
    for value in ("16x128", "1024x8", "16x128"):
        done = client.make(paired, **{PAIR: value})
        assert done.set and in_force(paired.engine.levers[PAIR]) == value, done
    assert [text for name, text in client.now().items() if name.endswith("max_dirty_mb")] == dirty
    paired.engine.take_back("enough", wait_s=1.0)
    assert in_force(paired.engine.levers[PAIR]) == "1024x8"


def test_what_lustre_refuses_of_a_pair_leaves_both_as_they_were(client: Node, paired: Agent) -> None:
    """32 KiB, after 2.17.0."""
    before = client.now()
    assert "Lustre" in why(client.make(paired, **{PAIR: "8x32"}))
    assert client.now() == before


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "import",
            "import:\n    connect_data:\n       grant_block_size: 131072\n",
            "a multiple of 32 pages here",
        ),
        ("max_mb_per_rpc_read", "4", "at least 16 pages here"),
    ],
)
def test_pages_that_would_not_stay_as_set_are_not_set(
    client: Node, paired: Agent, file: str, text: str, expected: str
) -> None:
    """ZFS allots more than a page at once; where reads and writes have sizes of their own 64 KiB is the least."""
    for device in (client.root / "sys/fs/lustre/osc").iterdir():
        (device / file).write_text(text)
        (device / file.replace("read", "write")).write_text(text)
    value = "40x32" if file == "import" else "8x32"
    before = client.now()
    assert expected in why(client.make(paired, **{PAIR: value}))
    assert client.now() == before
