"""What `tarazu doctor` and `tarazu config check` say of the part."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli.config_check import problems
from tarazu.doctor import peers
from tarazu.sim.testbed.processes import free_port
from tests.doctor.conftest import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_nobody_where_osss_report(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "SUBSCRIBED_S", 0.05)
    tree.put("part.bursts", statistics=f"tcp://127.0.0.1:{free_port()}")
    assert "burstd statistics" not in tree.look("peers", "oss"), "no OSS reports there"
    tree.put("ossd", exports=True)
    told = tree.look("peers", "oss")
    assert "refused" in told["burstd statistics"].found and "tarazu-burstd" in told["burstd statistics"].mend


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[part.bursts]\nstatistics = 'tcp://m:1'\n", "expected ossd.exports = true"),
        (
            "[ossd]\nexports = true\n[part.bursts]\nstatistics = 'tcp://127.0.0.1:5771'\n",
            "expected another address than that of mdsd.requests",
        ),
    ],
)
def test_what_cannot_work_together_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "tarazu.toml").write_text(text)
    [wrong] = problems(config.examine(tmp_path / "tarazu.toml", {}))
    assert message in str(wrong) and "[part.bursts] statistics: " in str(wrong)
