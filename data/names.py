"""How machines are called in prose: short, and recognisable to the people who run them."""

from __future__ import annotations


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
