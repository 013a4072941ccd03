"""The part's readers of files without a case of their own, and why."""

LEFT = {"tarazu.parts.drain.agent:with_here": "the kernel's"}
