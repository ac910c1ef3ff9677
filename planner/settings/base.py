"""What every section of the settings is made of: frozen, closed, typed to the letter."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Section(BaseModel):
    """A section of the settings; it cannot be changed, and takes no key that it does not name."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, populate_by_name=True
    )


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _env_name(value: str) -> str:
    if not _ENV_NAME.fullmatch(value):
        raise ValueError("must be the name of an environment variable, not the secret itself")
    return value


Share = Annotated[float, Field(ge=0, le=1)]
Percent = Annotated[float, Field(ge=0, le=100)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Name = Annotated[str, Field(min_length=1)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_one_or_many)]
EnvName = Annotated[str, AfterValidator(_env_name)]
