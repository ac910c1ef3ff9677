"""How machines and terms are called in prose: short, and recognisable to their people."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


# What the id of an instance begins with that stands for the unused part of a commitment.
UNUSED_PREFIX = "commitment:"


def short_name(resource: str, node: object = None) -> str:
    """The host name where telemetry gives one, else the last segment of the resource id.

    >>> short_name("/subscriptions/1/virtualmachines/nd-0"), short_name("i-0a", "train-1")
    ('nd-0', 'train-1')
    >>> short_name("commitment:arn:aws:savingsplans::1:savingsplan/5d0c"), short_name("i-0a", None)
    ('5d0c', 'i-0a')
    """
    if isinstance(node, str) and node:
        return node
    return resource.rstrip("/").rsplit("/", 1)[-1] or resource


def term_words(term: str) -> str:
    """The id of a reservation in words.

    >>> term_words("reserved_1y/monthly"), term_words("reserved_3y/all_upfront")
    ('1 year, paid monthly', '3 years, paid all upfront')
    """
    name, _, payment = term.partition("/")
    years = name.removeprefix("reserved_").removesuffix("y")
    return f"{years} year{'' if years == '1' else 's'}, paid {payment.replace('_', ' ')}"


def place(offer: str) -> str:
    """An offer in words.

    >>> place("aws/us-east-1/p5.48xlarge")
    'p5.48xlarge in us-east-1'
    """
    parts = offer.split("/", 2)
    return f"{parts[2]} in {parts[1]}" if len(parts) == 3 else offer


def nearest(word: str, known: Sequence[str]) -> str:
    """The remedy for a word that is not known: the nearest known one, and all of them.

    >>> nearest("trainnig", ["serving", "training"])
    'did you mean training? known: serving, training'
    """
    by_fold = {name.lower(): name for name in known}
    close = difflib.get_close_matches(word.lower(), list(by_fold), n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_fold[close[0]]}? known: {', '.join(known)}"
    close = difflib.get_close_matches(word.lower(), list(by_fold), n=1, cutoff=0)
    nearest = f"the nearest known is {by_fold[close[0]]}; " if close else ""
    return f"{nearest}known: {', '.join(known)}"
