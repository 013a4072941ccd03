"""The part's levers, of which the contract is tried (`tests/parts/changes`)."""

from tests.parts.council.client_case import ClientCase, ClientPairCase
from tests.parts.council.nrs_case import NrsCase

CASES = (ClientCase, ClientPairCase, NrsCase)
