"""An emulated Lustre on one machine, without root, for tests and demonstration.

`up` makes one in a directory, `Testbed.exec` runs programs on it. Nothing in `tarazu` outside `tarazu.sim` knows of it.
"""

from tarazu.sim.testbed.testbed import Testbed, down, open_testbed, status, up
from tarazu.sim.testbed.usage import Usage, usage

__all__ = ["Testbed", "Usage", "down", "open_testbed", "status", "up", "usage"]
