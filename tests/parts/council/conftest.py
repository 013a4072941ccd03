"""What these tests have of the core's."""

from tests.stats.conftest import oss_root  # noqa: F401
from tests.testbed.conftest import memory_directory  # noqa: F401
