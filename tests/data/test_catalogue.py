from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest

from data import catalogue
from data.frames import conform
from data.schema import GPU_SHAPES, PRICE_BOOK, PRICES

FACTS = Path(__file__).parents[2].parent / "shared" / "facts"


def shape(name: str) -> pd.Series:
    found = catalogue.shapes()
    return found[found["instance_type"] == name].iloc[0]


def test_the_tables_are_as_declared() -> None:
    pd.testing.assert_frame_equal(
        conform(catalogue.shapes(), GPU_SHAPES), catalogue.shapes(), check_dtype=True
    )
    pd.testing.assert_frame_equal(
        conform(catalogue.price_book(), PRICE_BOOK), catalogue.price_book()
    )


def test_a_caller_that_changes_its_frame_changes_no_other() -> None:
    mine = catalogue.shapes()
    mine.loc[:, "gpus"] = 99
    assert (catalogue.shapes()["gpus"] < 99).all()


@pytest.mark.parametrize(
    ("name", "family", "gpus", "gib", "vcpus", "ram", "interconnect"),
    [
        ("p5.48xlarge", "H100", 8, 80, 192, 2048, "nvswitch"),
        ("p5.4xlarge", "H100", 1, 80, 16, 256, "none"),
        ("p5e.48xlarge", "H200", 8, 141, 192, 2048, "nvswitch"),
        ("p5en.48xlarge", "H200", 8, 141, 192, 2048, "nvswitch"),
        ("a3-ultragpu-8g", "H200", 8, 141, 224, 2952, "nvswitch"),
        ("a3-highgpu-8g", "H100", 8, 80, 208, 1872, "nvswitch"),
        ("a3-highgpu-4g", "H100", 4, 80, 104, 936, "nvlink"),
        ("a3-megagpu-8g", "H100", 8, 80, 208, 1872, "nvswitch"),
        ("Standard_ND96isr_H100_v5", "H100", 8, 80, 96, 1900, "nvswitch"),
        ("Standard_NC40ads_H100_v5", "H100", 1, 94, 40, 320, "none"),
        ("Standard_NC80adis_H100_v5", "H100", 2, 94, 80, 640, "nvlink"),
        ("Standard_NCC40ads_H100_v5", "H100", 1, 94, 40, 320, "none"),
        ("Standard_ND96isr_H200_v5", "H200", 8, 141, 96, 1850, "nvswitch"),
        ("p4d.24xlarge", "A100", 8, 40, 96, 1152, "nvswitch"),
        ("p4de.24xlarge", "A100", 8, 80, 96, 1152, "nvswitch"),
        ("g5.4xlarge", "A10G", 1, 24, 16, 64, "none"),
        ("g3.4xlarge", "M60", 1, 8, 16, 122, "none"),
        ("g2-standard-24", "L4", 2, 24, 24, 96, "pcie"),
        ("ml.p5.48xlarge", "H100", 8, 80, 192, 2048, "nvswitch"),
    ],
)
def test_a_shape_is_that_of_the_vendor(
    name: str, family: str, gpus: int, gib: float, vcpus: int, ram: float, interconnect: str
) -> None:
    found = shape(name)
    assert (found.gpu_family, found.gpus, found.gpu_memory_gib) == (family, gpus, gib)
    assert (found.vcpus, found.memory_gib, found.interconnect) == (vcpus, ram, interconnect)


def test_only_sagemaker_sizes_are_of_a_managed_service() -> None:
    frame = catalogue.shapes()
    assert (frame["managed_service"] == frame["instance_type"].str.startswith("ml.")).all()


def test_a_machine_with_one_gpu_has_no_interconnect_and_one_with_more_has() -> None:
    frame = catalogue.shapes()
    assert ((frame["interconnect"] == "none") == (frame["gpus"] == 1)).all()
    assert set(frame["interconnect"]) == {"none", "pcie", "nvlink", "nvswitch"}


def test_the_family_of_every_shape_follows_from_its_model() -> None:
    frame = catalogue.shapes()
    assert (frame["gpu_model"].map(catalogue.gpu_family) == frame["gpu_family"]).all()


def test_every_price_has_a_shape_of_equal_size_and_is_orderable() -> None:
    book = catalogue.price_book()
    joined = book.merge(
        catalogue.shapes(), left_on=["provider", "instance_type"],
        right_on=["cloud", "instance_type"], suffixes=("", "_shape"), how="left",
    )  # fmt: skip
    for column in ("gpus", "gpu_model", "gpu_memory_gib", "vcpus", "memory_gib"):
        assert (joined[column] == joined[f"{column}_shape"]).all(), column
    base = joined["purchase_option"].str.replace(r"_[13]y$", "", regex=True)
    pairs = zip(base, joined["orderable_as"], strict=True)
    assert all(option in kinds.split(";") for option, kinds in pairs)


def test_p5e_has_no_on_demand_price() -> None:
    book = catalogue.price_book()
    options = set(book[book["instance_type"] == "p5e.48xlarge"]["purchase_option"])
    assert options == {"spot", "capacity_block"}


def test_a_price_is_read_to_its_last_digit() -> None:
    book = catalogue.price_book()
    row = book[(book["instance_type"] == "p4d.24xlarge") & (book["region"] == "ap-northeast-1")]
    prices = dict(zip(row["purchase_option"], row["usd_per_instance_hour"], strict=True))
    assert prices == {"on_demand": Decimal("30.09784"), "spot": Decimal("10.3316")}


def test_the_price_book_has_every_row_of_the_reference_facts() -> None:
    facts = FACTS / "gpu_offers.csv"
    if not facts.exists():
        pytest.skip("the reference facts are not beside the checkout")
    lines = facts.read_text(encoding="utf-8").splitlines()
    assert len(lines) - 1 == len(catalogue.price_book()) == 876


@pytest.mark.parametrize(
    ("cloud", "text", "region"),
    [
        ("aws", "US East (N. Virginia)", "us-east-1"),
        ("aws", "USE2", "us-east-2"),
        ("aws", "EU (Ireland)", "eu-west-1"),
        ("aws", "us-west-2", "us-west-2"),
        ("azure", "EastUS", "eastus"),
        ("azure", "US East", "eastus"),
        ("azure", "East US 2", "eastus2"),
        ("azure", "EU West", "westeurope"),
        ("gcp", "us-central1", "us-central1"),
        ("gcp", "Iowa", "us-central1"),
        ("aws", "Atlantis", None),
    ],
)
def test_a_region_is_found_by_any_of_its_names(cloud: str, text: str, region: str | None) -> None:
    assert catalogue.region_of(cloud, text) == region


def test_every_region_of_the_price_book_is_known() -> None:
    book = catalogue.price_book()
    pairs = set(zip(book["provider"], book["region"], strict=True))
    assert all(catalogue.region_of(cloud, region) == region for cloud, region in pairs)


def test_no_alias_means_two_regions() -> None:
    frame = catalogue.region_aliases()
    assert not frame.duplicated(["cloud", "alias"]).any()


def own_prices(*rows):
    plain = {
        "unit": "u", "export_id": "p", "provider": "fluidstack", "instance_type": "p9h100",
        "gpu_model": "H100-SXM5-80GB", "gpus": 8, "purchase_option": "on_demand", "source": "quote",
        "as_of": "2026-11-01",
    }  # fmt: skip
    full = [{**plain, "source_row_no": n, **row} for n, row in enumerate(rows, start=1)]
    return conform(pd.DataFrame(full), PRICES)


def stated(*rows):
    """The shapes beyond the shipped ones that the price rows state."""
    known = catalogue.shapes()
    found = catalogue.with_stated(known, own_prices(*rows))
    assert found.head(len(known)).equals(known)
    return found.iloc[len(known) :]


def test_prices_that_name_the_gpus_of_an_unknown_type_state_its_shape():
    found = stated({}, {"purchase_option": "reserved_1y", "vcpus": 192, "as_of": "2026-11-09"})
    row = found.iloc[0]
    assert len(found) == 1
    assert (row["cloud"], row["instance_type"], row["family"]) == ("fluidstack", "p9h100", "p9h100")
    assert (row["gpu_family"], row["gpus"], row["vcpus"]) == ("H100", 8, 192)
    assert (row["interconnect"], row["source"]) == ("none", "quote")
    assert row["orderable_as"] == "on_demand;reserved"
    assert row["as_of"] == pd.Timestamp("2026-11-09", tz="UTC")
    assert pd.isna(row["gpu_memory_gib"])  # not stated, and never 0


def test_no_shape_is_guessed_and_none_that_is_known_is_changed():
    assert not len(stated({"gpus": None}))
    assert not len(stated({"discount_share": 0.1}))
    assert not len(stated({}, {"gpus": 4}))  # which of the two?
    assert not len(stated({}, {"gpu_model": "A100-SXM4-80GB"}))
    assert not len(stated({"provider": "aws", "instance_type": "P5.48xlarge", "gpus": 4}))
    assert len(stated({}, {"gpus": 4, "instance_type": "p4h100"})) == 2
