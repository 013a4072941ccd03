"""Lever `nrs_tbf_rule`: one rule that limits, where an administrator has TBF in force (`values.tbf`).

Each queue is a part. TBF itself is never started or stopped, and other rules are left alone. A rule of a kind that the
type in force or the server's version does not have is not tried.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes import files
from tarazu.parts.changes.lctl import commands_of
from tarazu.parts.changes.model.change import Part
from tarazu.parts.council.levers.listed import ListedLever
from tarazu.parts.council.values import nrs, tbf


class TbfLever(ListedLever):
    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        file = files.find(self.root, nrs.POLICIES)
        policies = self._policies(file)
        rules = tbf.read_rules(files.read(self.root, tbf.RULES) or "") if file else {}
        return tuple(
            Part(f"{tbf.RULES} {queue}", self._rule(policy, rules.get(queue, set())), file.of if file else "")
            for queue, policy in policies.items()
        )

    def _policies(self, file: files.Found | None = None) -> dict[str, str]:
        """Of each queue; `file`: `nrs_policies`, where it has been read."""
        file = file or files.find(self.root, nrs.POLICIES)
        try:
            return nrs.read_policies(file.text) if file else {}
        except BadInput as error:
            raise Unavailable(str(error)) from None

    def _rule(self, policy: str, found: set[str]) -> str:
        if policy.split(maxsplit=1)[0] != "tbf" or not found:
            return f"no rules under {policy}"
        listed = {next((v for v in self.values if self.same(each, v)), each) for each in found}
        return " and ".join(sorted(listed))

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            if part.value != tbf.NONE:
                expected = f"expected tbf in both queues and no rule named {tbf.RULE}"
                raise Unavailable(f"{part.name}: {expected}, found {part.value}")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        policies, version = self._policies(), files.version(self.root)
        for name, value in wanted.items():
            if why := tbf.why_not(value, policies.get(name.rpartition(" ")[2], ""), version):
                raise Unavailable(f"{name}: {why}")
        for each in _settings(wanted, self.read(target)):
            self.lctl.set([each])

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(_settings(wanted, parts))

    def same(self, value: str, step: str) -> bool:
        return tbf.is_as_set(value, step)

    def between(self, value: str, steps: Sequence[str]) -> bool:
        return value == tbf.NONE


def _settings(wanted: Mapping[str, str], parts: Sequence[Part]) -> list[tuple[str, str]]:
    wanted, now = (
        {name.rpartition(" ")[2]: value for name, value in each.items()}
        for each in (wanted, {part.name: part.value for part in parts})
    )
    return tbf.settings(wanted, now)
