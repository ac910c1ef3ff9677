"""Which resource a Google Cloud SKU is of, so that a commitment meets the usage that it covers.

A resource commitment is bought for each resource by itself: GPUs of one model, cores and memory of
one machine family, local SSD. Texts: the SKU names of machines and commitments (Google SKU pages,
read 2026-11), matched in any case.
"""

from __future__ import annotations

import re

SPEND = "spend"
SSD = "ssd"
_SPEND_FEE = re.compile(r"^\s*commitment\b.*\bdollar\b")
_SSD = re.compile(r"\blocal (?:ssd|storage)\b")
_GPU = re.compile(
    r"\b(?:tesla\s+)?([a-z]{1,2}\d+[a-z]?)((?:\s+(?:mega|plus|ultra|\d+gb))*)\s+(?:\(\d+\s+)?gpus?\b"
)
_HOST = re.compile(
    r"\b([a-z]\d+[a-z]*?)\s*(mega|plus|ultra|high|edge)?"
    r"(?:\s+(?:predefined|custom|instance|sole tenancy))*\s+(cores?|v?cpus?|ram|memory)\b"
)
# Machine families that are sold with GPUs only.
_GPU_HOST = re.compile(r"^(?:a[2-9]|g[2-9])")


def resource_of(text: str) -> str | None:
    """The resource that a SKU's text names, the same for its usage and its commitment.

    None where none is known.

    >>> resource_of("Nvidia H100 80GB Plus GPU running in Americas")
    'gpu 80gb h100 mega'
    >>> resource_of("commitment v1: Nvidia H100 Mega 80GB GPU running in Iowa for 1 Year")
    'gpu 80gb h100 mega'
    >>> resource_of("A3 Instance Core running in Iowa"), resource_of("Commitment v1: A3 Cpu in EU")
    ('a3 core', 'a3 core')
    >>> resource_of("A4 Nvidia B200 (1 gpu slice) running in Iowa"), resource_of("GPUs in EU")
    ('gpu b200', 'gpu unnamed')
    >>> resource_of("SSD backed Local Storage in Iowa"), resource_of("Network Egress")
    ('ssd', None)
    >>> resource_of("Commitment - dollar based v1: GCE for 1 year")
    'spend'
    """
    words = " ".join(text.lower().split())
    if _SPEND_FEE.search(words):
        return SPEND
    if _SSD.search(words):
        return SSD
    gpu = _GPU.search(words)
    if gpu is not None:
        named = {gpu.group(1), *gpu.group(2).split()}
        return "gpu " + " ".join(sorted("mega" if word == "plus" else word for word in named))
    host = _HOST.search(words)
    if host is None:
        return "gpu unnamed" if re.search(r"\bgpus?\b", words) else None
    size = "mega" if host.group(2) == "plus" else host.group(2)
    part = "core" if host.group(3)[0] in "cv" else "ram"
    return " ".join(word for word in (host.group(1), size, part) if word)


def counts_gpus(resource: str) -> bool:
    """Whether the resource's hours are GPU-hours."""
    return resource.startswith("gpu ")


def is_of_gpu_machines(resource: str) -> bool:
    """Whether only machines with GPUs use the resource.

    >>> is_of_gpu_machines("a3 core"), is_of_gpu_machines("n2 core"), is_of_gpu_machines("ssd")
    (True, False, False)
    """
    return counts_gpus(resource) or _GPU_HOST.match(resource) is not None
