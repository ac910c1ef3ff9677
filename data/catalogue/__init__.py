"""Reference tables that ship with the package; see SOURCES.md beside them."""

from __future__ import annotations

from data.catalogue.readers import (
    alias_key,
    gpu_family,
    price_book,
    region_aliases,
    region_of,
    shapes,
    with_stated,
)

__all__ = [
    "alias_key", "gpu_family", "price_book", "region_aliases", "region_of", "shapes", "with_stated",
]  # fmt: skip
