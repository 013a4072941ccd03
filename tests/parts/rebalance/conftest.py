"""What these tests have of the core's."""

from tests.test_locks import library, without_locks  # noqa: F401
