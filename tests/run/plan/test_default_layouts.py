"""The default layouts that the leader reads for clientd."""

from __future__ import annotations

from pathlib import Path

from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.model import FileName, Forecast
from tarazu.plan.left_to_lustre import default_layout
from tarazu.run.plan.default_layouts import own_default
from tarazu.stats import client
from tarazu.units import MIB


def test_a_root_without_a_default_has_the_striping_that_the_client_knows(tmp_path: Path) -> None:
    """It counted as one stripe of 4 MiB, whatever the site had set for the whole file system."""
    lov = tmp_path / "sys/fs/lustre/lov/work-clilov-ff21"
    lov.mkdir(parents=True)
    targets = UsableOsts(35)

    def stripes(count: str) -> tuple[int, ...]:
        (lov / "stripecount").write_text(f"{count}\n")
        (lov / "stripesize").write_text("1048576\n")
        blob = own_default(client.file_system("work", tmp_path))
        default = default_layout(blob)
        assert not isinstance(default, str)
        found = []
        for setting in ("site", "auto"):
            policy = LayoutPolicy(setting, min_size_bytes=0)
            manager = ConfigurationManager(policy, targets, default)
            (choice,) = manager.choose([Forecast(FileName("/f", "/f", "/f", False, 0, 0, 0), 64 * MIB)])
            assert choice.layout
            found.append(choice.layout.components[0].stripe_count)
        return tuple(found)

    assert stripes("1") == stripes("") == stripes("x") == stripes("0") == (1, 8)
    assert stripes("-1") == (35, 35)
    assert stripes("16") == (16, 16)
    assert own_default(client.file_system("other", tmp_path)) == b""
