"""What these tests have of the core's."""

from tests.cli.test_sick_ost import sick, testbed  # noqa: F401
