"""What machines, regions and list prices exist, as far as the shipped reference tables say.

Each frame is read once; callers get a copy of their own.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

import pandas as pd

from data.frames import conform
from data.schema import GPU_SHAPES, PRICE_BOOK

_VENDOR_WORDS = {"NVIDIA", "AMD", "TESLA", "INSTINCT", "GEFORCE"}
# What follows the family in a model's name: form factor, memory, and words without content.
_TAIL_WORD = re.compile(r"SXM\d*|PCIE|NVL\d*|HBM\w*|\d+(GB|GIB|G)|MEGA|PLUS|TENSOR|GPU|CORE|NVLINK")


def shapes() -> pd.DataFrame:
    """Frame of GPU_SHAPES, one row per (cloud, instance_type)."""
    return _shapes().copy()


def with_stated(known: pd.DataFrame, prices: pd.DataFrame) -> pd.DataFrame:
    """Frame of GPU_SHAPES: the known types, and those that only the user's prices describe.

    `prices` is a frame of PRICES: an absolute row that names the GPUs of a type states its shape.
    What the rows of a type do not say stays missing, links between GPUs count as none. A type
    that is known stays as it is; one whose rows contradict each other stays unknown.
    """
    stated = prices[prices["discount_share"].isna()]
    stated = stated.dropna(subset=["instance_type", "gpu_model", "gpus"])
    types = set(known["cloud"] + "|" + known["instance_type"].str.lower())
    rows = []
    for (cloud, kind), group in stated.groupby(
        [stated["provider"].str.lower(), stated["instance_type"].str.lower()]
    ):
        said = group["gpus"].astype(str) + " " + group["gpu_model"].map(gpu_family)
        if said.nunique() == 1 and f"{cloud}|{kind}" not in types:
            rows.append(_stated_shape(str(cloud), group))
    if not rows:
        return known.copy()
    return pd.concat([known, conform(pd.DataFrame(rows), GPU_SHAPES)], ignore_index=True)


def _stated_shape(cloud: str, rows: pd.DataFrame) -> dict[str, object]:
    """The shape that the price rows of one type state, the first statement of each fact."""
    first = rows.bfill().iloc[0]
    options = rows["purchase_option"].dropna().str.replace(r"_\dy$", "", regex=True)
    return {
        **{name: first[name] for name in ("instance_type", "gpu_model", "gpus")},
        **{name: first[name] for name in ("gpu_memory_gib", "vcpus", "memory_gib")},
        "cloud": cloud,
        "family": first["instance_type"],
        "gpu_family": gpu_family(str(first["gpu_model"])),
        "interconnect": "none",
        "orderable_as": ";".join(sorted(set(options))),
        "managed_service": False,
        "source": first["source"] if pd.notna(first["source"]) else "price overrides",
        "as_of": rows["as_of"].max(),
    }


def price_book() -> pd.DataFrame:
    """Frame of PRICE_BOOK as shipped, unchecked; `planner.prices.check` says what is used."""
    return _price_book().copy()


def region_aliases() -> pd.DataFrame:
    """Frame of cloud, alias (as `alias_key` folds it) and region; a region is its own alias."""
    return _region_aliases().copy()


def region_of(cloud: str, text: str) -> str | None:
    """The region code that a cloud means by a text, or None where the text is not known.

    >>> region_of("aws", "US East (N. Virginia)"), region_of("azure", "US East")
    ('us-east-1', 'eastus')
    """
    return _region_map().get((cloud, alias_key(text)))


def alias_key(text: str) -> str:
    """A region's name without blanks and in lower case, as `region_aliases` keeps it.

    >>> alias_key("US East (Ohio)")
    'useast(ohio)'
    """
    return text.lower().replace(" ", "")


def gpu_family(model: str) -> str:
    """The family of a GPU model: its name without vendor, form factor and memory.

    >>> gpu_family("H100-SXM5-80GB"), gpu_family("NVIDIA H100 NVL"), gpu_family("RTX-PRO-6000-96GB")
    ('H100', 'H100', 'RTX-PRO-6000')
    """
    words = [word for word in re.split(r"[\s_-]+", model.strip().upper()) if word]
    named = [word for word in words if word not in _VENDOR_WORDS]
    family: list[str] = []
    for word in named:
        if family and _TAIL_WORD.fullmatch(word):
            break
        family.append(word)
    return "-".join(family) or model.strip().upper()


@lru_cache(maxsize=1)
def _shapes() -> pd.DataFrame:
    return conform(_read("gpu_shapes.csv"), GPU_SHAPES)


@lru_cache(maxsize=1)
def _price_book() -> pd.DataFrame:
    return conform(_read("price_book.csv"), PRICE_BOOK)


@lru_cache(maxsize=1)
def _region_aliases() -> pd.DataFrame:
    frame = _read("regions.csv")
    return frame.assign(alias=frame["alias"].map(alias_key))


@lru_cache(maxsize=1)
def _region_map() -> dict[tuple[str, str], str]:
    rows = _region_aliases().itertuples(index=False)
    return {(str(row.cloud), str(row.alias)): str(row.region) for row in rows}


def _read(name: str) -> pd.DataFrame:
    with files("data.catalogue").joinpath(name).open(encoding="utf-8") as stream:
        frame = pd.read_csv(stream, dtype=str, keep_default_na=False)
    frame = frame.replace("", None)
    if "managed_service" in frame:
        frame["managed_service"] = frame["managed_service"] == "true"
    return frame
