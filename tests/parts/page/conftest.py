"""What these tests have of the core's."""

from tests.daemons.conftest import site  # noqa: F401
