"""The text of an error whose cause has no class of its own."""

import pytest

from backfill_assets.errors import BackfillAssetsError, DeclarationError, RequestError


@pytest.mark.parametrize("cause", [DeclarationError, RequestError])
@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"found": "it is 0"}, "it is 0"),
        ({"found": "it is 0", "expected": "1"}, "it is 0; expected 1"),
        ({"found": "it is 0", "do": "write 1"}, "it is 0; write 1"),
        ({"found": "it is 0", "do": "Write 1."}, "it is 0. Write 1."),
        ({"found": "it is 0", "do": "`one` does it"}, "it is 0; `one` does it"),
        ({"found": "it is 0", "expected": "1", "do": "Wait"}, "it is 0; expected 1. Wait"),
    ],
)
def test_an_error_says_what_was_found_what_was_expected_and_what_to_do(
    cause: type[DeclarationError | RequestError], parts: dict[str, str], text: str
):
    error = cause(**parts)

    assert isinstance(error, BackfillAssetsError)
    assert (str(error), error.exit_code) == (text, 1)
