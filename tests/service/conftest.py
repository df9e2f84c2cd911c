"""Cases are run twice: on input of our own, and on the development case where it lies beside the repository."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.corpus import case_input

Case = Callable[[str, Any], Any]


@pytest.fixture(params=["own", "given"])
def case(request: pytest.FixtureRequest) -> Case:
    """Picks the input of a case: `case("04", own)` is `own`, or that of dev-04."""

    def pick(number: str, own: Any) -> Any:
        if request.param == "own":
            return own
        return case_input(request.getfixturevalue("cases_folder"), number)

    return pick
