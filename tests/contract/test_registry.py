"""No normaliser without a contract test; no folder of a cloud without a registry line."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from providers.registry import BILLING_NORMALISERS, billing_normaliser
from tests.contract.base import BillingContract

HERE = Path(__file__).parent
PROVIDERS = HERE.parents[1] / "providers"


def _answered() -> set[str]:
    for path in sorted(HERE.glob("test_*.py")):
        if path.stem != "test_registry":
            import_module(f"tests.contract.{path.stem}")
    return {name for suite in BillingContract.__subclasses__() for name in suite.datasets}


def test_every_normaliser_of_the_registry_has_a_contract_test() -> None:
    assert sorted(set(BILLING_NORMALISERS) - _answered()) == []


def test_every_normaliser_of_the_registry_can_be_imported() -> None:
    for dataset in BILLING_NORMALISERS:
        assert callable(billing_normaliser(dataset))


def test_every_cloud_folder_with_a_billing_module_is_in_the_registry() -> None:
    folders = {path.parent.name for path in PROVIDERS.glob("*/billing.py")}
    listed = {target.split(".")[1] for target in BILLING_NORMALISERS.values()}
    assert folders == listed
