"""How the JSON of a plan writes instants, intervals and sets of them: annotations for pydantic.

An instant is an ISO text in UTC, an interval ``[start, end)`` a pair of them, a set a list of pairs.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, AwareDatetime, Field, GetPydanticSchema, PlainSerializer
from pydantic_core import core_schema as schemas

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import Interval, in_utc
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler


def instant_form(instant: datetime) -> str:
    """Write an instant as ISO text in UTC."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def in_form_of(
    form: object, read: Callable[[Any], object], write: Callable[[Any], object]
) -> GetPydanticSchema:
    """Have pydantic read and write a value in the form of a type that it knows.

    Args:
        form: that type.
        read: makes the value of one of that type.
        write: makes one of that type of the value.
    """

    def of_form(formed: object) -> object:
        try:
            return read(formed)
        except BackfillAssetsError as error:
            raise ValueError(str(error)) from error  # so that pydantic says where it stands

    def schema(_: object, handler: GetCoreSchemaHandler) -> schemas.CoreSchema:
        inner = handler.generate_schema(form)
        written = schemas.plain_serializer_function_ser_schema(write, return_schema=inner)
        return schemas.no_info_after_validator_function(of_form, inner, serialization=written)

    return GetPydanticSchema(schema)


Instant = Annotated[AwareDatetime, AfterValidator(in_utc), PlainSerializer(instant_form)]
_Pair = Annotated[tuple[Instant, Instant], Field(description="[start, end), UTC")]
Span = Annotated[
    Interval,
    in_form_of(
        _Pair, lambda pair: Interval(*pair), lambda interval: (interval.start, interval.end)
    ),
]
Cells = Annotated[IntervalSet, in_form_of(tuple[Span, ...], IntervalSet.of, tuple)]
