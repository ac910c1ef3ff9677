from __future__ import annotations

import json

import ibis
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.engines import connect
from planner.classes import assign, assign_frame, eligible
from planner.settings import MatchRule, OfferRule, WorkloadClass

ENGINE = connect(threads=1)
COLUMNS = ("source", "account", "region", "instance_type", "resource_name", "service", "tags")


def rule(name: str, **match: object) -> WorkloadClass:
    return WorkloadClass(name=name, match=MatchRule(**match))


def billing(*rows: dict[str, str | None]) -> pd.DataFrame:
    frame = pd.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows])
    return frame.astype("str").where(frame.notna(), None).astype("str").assign(n=range(len(rows)))


def by_sql(frame: pd.DataFrame, classes: list[WorkloadClass]) -> list[str]:
    schema = {name: "int64" if name == "n" else "string" for name in frame.columns}
    cells = {
        name: [None if pd.isna(cell) else cell for cell in frame[name].tolist()] for name in schema
    }
    types = {"int64": pa.int64(), "string": pa.string()}
    table = ibis.memtable(
        pa.table({name: pa.array(cells[name], types[kind]) for name, kind in schema.items()})
    )
    found = ENGINE.to_pyarrow(assign(table, classes).order_by("n"))
    return found.column("workload_class").to_pylist()


def both(frame: pd.DataFrame, classes: list[WorkloadClass]) -> list[str]:
    """The classes by pandas, once SQL has given the same."""
    found = assign_frame(frame, classes)["workload_class"].tolist()
    assert by_sql(frame, classes) == found
    return found


def test_the_first_class_that_matches_wins_and_the_rest_is_unclassified() -> None:
    rows = billing({"account": "1"}, {"account": "2", "region": "eu"}, {"account": "3"}, {})
    classes = [rule("a", account=("1", "2")), rule("b", region=("eu",))]
    assert both(rows, classes) == ["a", "a", "unclassified", "unclassified"]
    assert both(rows, classes[::-1]) == ["a", "b", "unclassified", "unclassified"]


def test_all_conditions_must_hold_and_any_value_of_one_is_enough() -> None:
    rows = billing(
        {"account": "1", "region": "eu"}, {"account": "1", "region": "us"}, {"region": "eu"}
    )
    assert both(rows, [rule("a", account=("1", "9"), region=("eu", "ap"))]) == [
        "a",
        "unclassified",
        "unclassified",
    ]


def test_without_classes_every_row_is_unclassified() -> None:
    assert both(billing({"account": "1"}), []) == ["unclassified"]


def test_an_empty_list_is_no_condition_and_a_class_without_conditions_takes_the_rest() -> None:
    rows = billing({"account": "1"}, {})
    classes = [rule("a", account=("1",), region=()), rule("rest", account=())]
    assert both(rows, classes) == ["a", "rest"]


def test_a_class_named_unclassified_only_describes_what_no_rule_matched() -> None:
    rows = billing({"account": "1"}, {"account": "2"})
    classes = [WorkloadClass(name="unclassified"), rule("a", account=("1",))]
    assert both(rows, classes) == ["a", "unclassified"]


@pytest.mark.parametrize(
    ("glob", "text", "matches"),
    [
        ("p5.48xlarge", "p5.48xlarge", True),
        ("p5.48xlarge", "p5x48xlarge", False),
        ("p5.48xlarge", "ml.p5.48xlarge", False),
        ("p5*", "p5en.48xlarge", True),
        ("p5", "p5.48xlarge", False),
        ("standard_nd96isr_h100_v5", "Standard_ND96isr_H100_v5", True),
        ("p?.48xlarge", "p5.48xlarge", True),
        ("p?.48xlarge", "p55.48xlarge", False),
        ("*", "", True),
        ("a_c", "abc", False),
        ("100%", "100%", True),
        ("100%", "1000", False),
        ("[a]", "a", False),
        ("[a]", "[a]", True),
        ("a|b", "b", False),
        ("x", "x\n", False),
        ("a*z", "a\nz", True),
        (r"a\b", r"a\b", True),
        ("prod-*", "prod-1/x", True),
    ],
)
def test_a_glob_means_star_and_question_mark_and_nothing_else(
    glob: str, text: str, matches: bool
) -> None:
    rows = billing({"instance_type": text})
    assert both(rows, [rule("a", instance_type=(glob,))]) == ["a" if matches else "unclassified"]


@pytest.mark.parametrize(
    ("tags", "matches"),
    [
        ('{"team": "research"}', True),
        ('{"Team":"Research"}', True),
        ('{"user:team": "research"}', True),
        ('{"user_Team": "research"}', True),
        ('{"a": "b", "team": "research-2"}', True),
        ('{"team": "web"}', False),
        ('{"steam": "research"}', False),
        ('{"aws:team": "research"}', False),
        ('{"team": null}', False),
        ("{}", False),
        (None, False),
        ('{"note": "team: research"}', False),
        (json.dumps({"note": '"team": "research"'}), False),
        (json.dumps({"note": '{"team": "research"}'}), False),
        (json.dumps({"note": ', "team": "research"'}), False),
        (json.dumps({"research": "team"}), False),
    ],
)
def test_a_tag_is_found_by_its_key_and_value(tags: str | None, matches: bool) -> None:
    rows = billing({"tags": tags})
    assert both(rows, [rule("a", tags={"team": ("research*",)})]) == [
        "a" if matches else "unclassified"
    ]


@pytest.mark.parametrize(
    "value", ['say "x"', r"back\slash", "a/b", "tab\tx", "Ærø", "日本", "💥", "a.b+c", "x{1}"]
)
@pytest.mark.parametrize("raw", [True, False])
def test_a_tag_value_is_found_however_json_spells_it(value: str, raw: bool) -> None:
    rows = billing({"tags": json.dumps({"k": value}, ensure_ascii=not raw)})
    assert both(rows, [rule("a", tags={"k": (value,)})]) == ["a"]
    assert both(rows, [rule("a", tags={"k": ("?" * len(value),)})]) == ["a"]
    assert both(rows, [rule("a", tags={"k": (value + "x",)})]) == ["unclassified"]


def test_every_tag_of_a_rule_must_hold() -> None:
    rows = billing({"tags": '{"a": "1", "b": "2"}'}, {"tags": '{"a": "1"}'})
    assert both(rows, [rule("x", tags={"a": ("1",), "b": ("2", "3")})]) == ["x", "unclassified"]


def test_telemetry_is_matched_by_its_own_columns() -> None:
    rows = pd.DataFrame(
        {
            "cloud": ["aws", "aws", "gcp"],
            "instance_id": ["i-1", "i-2", "i-3"],
            "namespace": ["train", "web", None],
            "team": ["research", "web", None],
            "n": [0, 1, 2],
        }
    )
    assert both(rows, [rule("a", namespace=("train",))]) == ["a", "unclassified", "unclassified"]
    assert both(rows, [rule("a", tags={"Team": ("web",)})]) == [
        "unclassified",
        "a",
        "unclassified",
    ]
    assert both(rows, [rule("a", cloud=("gcp",))]) == ["unclassified", "unclassified", "a"]
    assert both(rows, [rule("a", resource_id=("i-?",), cloud=("aws",))]) == [
        "a",
        "a",
        "unclassified",
    ]


def test_a_condition_on_a_column_that_a_table_lacks_never_holds() -> None:
    assert both(billing({"account": "1"}), [rule("a", namespace=("*",))]) == ["unclassified"]


TEXTS = st.text(alphabet='aAbZ01.-_*?%:"\\/{},é 日', max_size=6)
TAG_KEYS = st.sampled_from(["team", "Team", "user:team", "user_env", "env", "x,y", 'q"'])


@st.composite
def random_rows(draw: st.DrawFn) -> pd.DataFrame:
    rows = []
    for _ in range(draw(st.integers(1, 5))):
        row: dict[str, str | None] = {
            name: draw(st.none() | TEXTS) for name in COLUMNS if name != "tags"
        }
        tags = draw(st.none() | st.dictionaries(TAG_KEYS, TEXTS, max_size=3))
        compact = draw(st.booleans())
        row["tags"] = None if tags is None else json.dumps(
            tags, ensure_ascii=draw(st.booleans()), separators=(",", ":") if compact else None
        )  # fmt: skip
        rows.append(row)
    return billing(*rows)


@st.composite
def random_classes(draw: st.DrawFn) -> list[WorkloadClass]:
    values = st.lists(TEXTS.filter(bool), max_size=2).map(tuple)
    return [
        rule(
            f"c{number}",
            account=draw(values),
            instance_type=draw(values),
            tags=draw(st.dictionaries(st.sampled_from(["team", "env", "x,y"]), values, max_size=2)),
        )
        for number in range(draw(st.integers(0, 3)))
    ]


@settings(max_examples=60, deadline=None)
@given(rows=random_rows(), classes=random_classes())
def test_sql_and_pandas_agree(rows: pd.DataFrame, classes: list[WorkloadClass]) -> None:
    both(rows, classes)


@settings(max_examples=60, deadline=None)
@given(rows=random_rows(), key=st.sampled_from(["team", "env"]), value=TEXTS.filter(bool))
def test_tags_are_matched_as_a_parser_of_json_would(
    rows: pd.DataFrame, key: str, value: str
) -> None:
    plain = value.replace("*", "").replace("?", "") or "a"
    expected = []
    for text in rows["tags"]:
        tags = json.loads(text) if isinstance(text, str) else {}
        named = {f"{prefix}{key}" for prefix in ("", "user:", "user_")}
        held = [v for k, v in tags.items() if k.lower() in named]
        hit = any(v.lower() == plain.lower() for v in held)
        expected.append("a" if hit else "unclassified")
    assert assign_frame(rows, [rule("a", tags={key: (plain,)})])["workload_class"].tolist() == (
        expected
    )


SHAPES = pd.DataFrame(
    [
        ("aws", "p5.48xlarge", "H100-SXM5-80GB", "H100", 8, 80.0, "nvswitch", False),
        ("aws", "p5.4xlarge", "H100-SXM5-80GB", "H100", 1, 80.0, "none", False),
        ("aws", "p5en.48xlarge", "H200-SXM5-141GB", "H200", 8, 141.0, "nvswitch", False),
        ("aws", "ml.p5.48xlarge", "H100-SXM5-80GB", "H100", 8, 80.0, "nvswitch", True),
        ("gcp", "a3-highgpu-4g", "H100-SXM5-80GB", "H100", 4, 80.0, "nvlink", False),
        ("azure", "Standard_NC80adis_H100_v5", "H100-NVL-94GB", "H100", 2, 94.0, "nvlink", False),
    ],
    columns=[
        "cloud", "instance_type", "gpu_model", "gpu_family", "gpus", "gpu_memory_gib",
        "interconnect", "managed_service",
    ],
)  # fmt: skip


def offers() -> pd.DataFrame:
    """One offer of each shape, and two of a cloud that the shape table does not know."""
    rows = [
        {
            "provider": row.cloud,
            "region": {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}[row.cloud],
            "instance_type": row.instance_type,
            "gpu_model": row.gpu_model,
            "gpu_family": row.gpu_family,
            "gpu_memory_gib": row.gpu_memory_gib,
        }
        for row in SHAPES.itertuples()
    ]
    for name, link in (("8x-sxm", "nvswitch"), ("1x", None)):
        rows.append(
            {
                "provider": "otto",
                "region": "oslo",
                "instance_type": name,
                "gpu_model": "H100",
                "gpu_memory_gib": 80.0,
                "interconnect": link,
            }
        )
    return pd.DataFrame(rows)


def suited(family: str = "H100", **limits: object) -> set[str]:
    one = WorkloadClass(name="a", offers=OfferRule(**limits))
    return set(eligible(one, offers(), SHAPES, family))


def test_an_offer_is_named_by_cloud_region_and_type() -> None:
    assert suited(clouds=("gcp",)) == {"gcp/us-central1/a3-highgpu-4g"}


P5, P5_SMALL = "aws/us-east-1/p5.48xlarge", "aws/us-east-1/p5.4xlarge"
P5EN, A3 = "aws/us-east-1/p5en.48xlarge", "gcp/us-central1/a3-highgpu-4g"
NC80 = "azure/eastus/Standard_NC80adis_H100_v5"
OTTO, OTTO_ONE = "otto/oslo/8x-sxm", "otto/oslo/1x"


def test_without_limits_every_offer_of_the_gpu_family_suits_and_no_managed_one() -> None:
    assert suited() == {P5, P5_SMALL, A3, NC80, OTTO, OTTO_ONE}


def test_an_h200_class_stays_on_h200() -> None:
    assert suited("H200") == {P5EN}


def test_listed_gpu_models_outrank_the_family() -> None:
    assert suited(gpu_models=("H200*",)) == {P5EN}
    assert suited(gpu_models=("H100-NVL-94GB", "h200")) == {NC80, P5EN}


def test_gpu_memory_is_a_minimum_of_one_gpu() -> None:
    assert suited(gpu_memory_gib=80) == suited()
    assert suited(gpu_memory_gib=81) == {NC80}


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("none", {P5, P5_SMALL, A3, NC80, OTTO, OTTO_ONE}),
        ("pcie", {P5, A3, NC80, OTTO}),
        ("nvlink", {P5, A3, NC80, OTTO}),
        ("nvswitch", {P5, OTTO}),
    ],
)
def test_the_interconnect_is_a_minimum_and_an_unknown_one_is_none(
    link: str, expected: set[str]
) -> None:
    assert suited(interconnect=link) == expected


def test_clouds_regions_and_types_are_limits() -> None:
    assert suited(clouds=("AWS", "gcp")) == {P5, P5_SMALL, A3}
    assert suited(regions=("us-*",)) == {P5, P5_SMALL, A3}
    assert suited(clouds=("aws",), instance_types=("p5.48*",)) == {P5}


def test_a_memory_that_no_one_states_meets_no_minimum() -> None:
    frame = offers()
    frame.loc[frame["instance_type"] == "8x-sxm", "gpu_memory_gib"] = float("nan")
    one = WorkloadClass(name="a", offers=OfferRule(gpu_memory_gib=1))
    assert OTTO not in eligible(one, frame, SHAPES, "H100")
