from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from data.errors import ConfigError
from planner.config import DEFAULT_TOML, load_config, parse_config
from planner.settings import MatchRule, Settings, WorkloadClass, default_store

HERE = Path("loadfactor.toml")


def faults(text: str) -> dict[str, str]:
    """Place to what is wrong there."""
    with pytest.raises(ConfigError) as caught:
        parse_config(text, HERE)
    return {
        problem.where: f"{problem.what} ({problem.remedy})" for problem in caught.value.problems
    }


SKELETON = """
[store]
path = "~/loadfactor"
engine = "duckdb"
[sources.aws-prod]
kind = "aws"
billing = "s3://bucket/prefix/export-name"
role_arn = "arn:aws:iam::111122223333:role/loadfactor-read"
external_id_env = "LOADFACTOR_EXTERNAL_ID"
utilization = "cloudwatch"
[sources.dcgm]
kind = "prometheus"
url = "https://prometheus.internal"
instance_id_label = "instance_id"
node_map = "nodes.csv"
[[classes]]
name = "training"
match = {tags={team=["research"]}, instance_type=["p5.48xlarge"], account=[], namespace=[]}
interruptible = true
max_wait_hours = 0
min_firm_share = 0.5
checkpoint_minutes = 20
gang_gpus = 64
idle_after_minutes = 30
offers = { gpu_memory_gib = 80, interconnect = "nvswitch", clouds = ["aws", "gcp"], regions = [] }
[prices]
max_age_days = 180
overrides = "overrides.csv"
currency = "USD"
[prices.rates]
EUR = { per_usd = 0.92, as_of = 2026-11-01 }
[plan]
horizon_days = 365
terms = ["1y"]
upfront_budget = 0
cvar = { lambda = 0.2, beta = 0.9 }
tolerance = 0.001
display_timezone = "UTC"
[guards]
max_cut_share = 0.2
max_cut_gpus = 64
max_plan_age_hours = 36
protected = ["prod-*"]
[[alerts]]
name = "idle-node"
when = { state = ["idle_held", "free"], for_minutes = 30, min_usd = 50 }
cooldown_minutes = 720
to = ["slack"]
[alert_targets.slack]
kind = "webhook"
url_env = "LOADFACTOR_SLACK_URL"
"""


def test_every_key_of_the_published_skeleton_is_taken() -> None:
    settings = parse_config(SKELETON, HERE)
    training = settings.classes[0]
    assert settings.store_path == Path.home() / "loadfactor"
    assert settings.sources["aws-prod"].kind == "aws"
    assert training.match.tags == {"team": ("research",)}
    assert training.offers.clouds == ("aws", "gcp")
    assert (training.gang_gpus, training.min_firm_share) == (64, 0.5)
    assert settings.prices.rates["EUR"].as_of == date(2026, 11, 1)
    assert settings.plan.cvar.weight == 0.2
    assert settings.alerts[0].when.min_usd == 50
    assert settings.guards.protected == ("prod-*",)


def test_the_template_states_the_defaults_and_nothing_else() -> None:
    assert parse_config(DEFAULT_TOML, HERE) == parse_config("", HERE)


def test_the_examples_of_the_template_are_valid_once_their_mark_is_taken_away() -> None:
    lines = []
    for line in DEFAULT_TOML.splitlines():
        body = line.removeprefix("# ")
        is_example = body.startswith("[") or (" = " in body and not body.startswith("A line"))
        lines.append(body if line.startswith("# ") and is_example else line)
    # Each header comes once: the shown [prices.rates] stays below [prices].
    settings = parse_config("\n".join(lines), HERE)
    assert [one.name for one in settings.classes] == ["training"]
    assert set(settings.sources) == {"exports", "aws-prod", "gcp-bills", "azure-bills", "dcgm"}
    assert settings.alerts[0].to == ("slack",)


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config() == Settings(folder=tmp_path)


def test_the_file_of_the_working_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loadfactor.toml").write_text("[prices]\nmax_age_days = 7\n")
    assert load_config().prices.max_age_days == 7


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "other.toml")
    assert caught.value.exit_code == 2
    assert "other.toml" in caught.value.problems[0].where


def test_the_default_store_lies_in_the_users_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Settings().store_path == default_store() == tmp_path / "loadfactor"
    monkeypatch.setenv("XDG_DATA_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store() == tmp_path / ".local" / "share" / "loadfactor"


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    settings = parse_config('[store]\npath = "store"\n', tmp_path / "loadfactor.toml")
    assert settings.store_path == tmp_path / "store"
    assert settings.path("a.csv") == tmp_path / "a.csv"
    assert settings.path("/abs/a.csv") == Path("/abs/a.csv")


def test_object_storage_is_refused_when_the_store_is_opened() -> None:
    settings = parse_config('[store]\npath = "s3://bucket/x"\n', HERE)
    with pytest.raises(ConfigError, match="folder"):
        _ = settings.store_path


def test_a_zero_is_honoured_and_not_replaced_by_the_default() -> None:
    text = """
    [thresholds]
    busy_util_percent = 0
    memory_held_share = 0
    [prices]
    max_age_days = 0
    [guards]
    max_cut_share = 0
    max_cut_gpus = 0
    [[classes]]
    name = "a"
    idle_after_minutes = 0
    busy_util_percent = 0
    """
    settings = parse_config(text, HERE)
    assert settings.thresholds.busy_util_percent == settings.thresholds.memory_held_share == 0
    assert settings.prices.max_age_days == settings.guards.max_cut_gpus == 0
    assert settings.guards.max_cut_share == 0
    assert settings.classes[0].idle_after_minutes == 0
    assert settings.classes[0].busy_util_percent == 0


def test_every_fault_is_reported_at_once_with_its_place() -> None:
    found = faults(
        """
        [pricess]
        [store]
        engin = "duckdb"
        [sources.a]
        kind = "awss"
        [sources.b]
        billing = "x"
        [sources.c]
        kind = "aws"
        billng = "x"
        [[classes]]
        name = "prod"
        [[classes]]
        name = "batch"
        idle_after_minutes = -1
        interruptible = "yes"
        min_firm_share = 1.5
        match = { account = 3 }
        offers = { interconnect = "nvlnk" }
        [[classes]]
        name = "batch"
        [prices]
        currency = "EUR"
        [prices.rates]
        NOK = { per_usd = 10 }
        [plan]
        terms = ["2y"]
        display_timezone = "Mars/Base"
        [[alerts]]
        name = "i"
        to = ["slak"]
        [alert_targets.slack]
        kind = "webhook"
        url_env = "SLACK"
        """
    )
    batch = '(class "batch")'
    assert set(found) == {
        "pricess",
        "store.engin",
        "sources.a.kind",
        "sources.b.kind",
        "sources.c.billng",
        'classes[0].match (class "prod")',
        f"classes[1].idle_after_minutes {batch}",
        f"classes[1].interruptible {batch}",
        f"classes[1].min_firm_share {batch}",
        f"classes[1].match.account {batch}",
        f"classes[1].offers.interconnect {batch}",
        f"classes[2].name {batch}",
        "prices.currency",
        "prices.rates.NOK.as_of",
        "plan.terms[0]",
        "plan.display_timezone",
        'alerts[0].to (alert "i")',
    }
    assert "did you mean prices?" in found["pricess"]
    assert "did you mean engine?" in found["store.engin"]
    assert "did you mean aws?" in found["sources.a.kind"]
    assert "did you mean billing?" in found["sources.c.billng"]
    assert "must be <= 1, is 1.5" in found[f"classes[1].min_firm_share {batch}"]
    assert "did you mean nvlink?" in found[f"classes[1].offers.interconnect {batch}"]
    assert "is missing" in found["prices.rates.NOK.as_of"]


def test_the_nearest_key_is_named_even_where_none_is_near() -> None:
    assert "the nearest known is" in faults("[store]\nzzz = 1\n")["store.zzz"]


@pytest.mark.parametrize("key", ["folder", "classes_", "lambda"])
def test_a_key_that_is_no_section_is_unknown(key: str) -> None:
    assert key in faults(f"{key} = 1\n")


def test_a_broken_line_is_named_and_the_rest_is_still_judged() -> None:
    found = faults("[store]\npath = ~/store\nenginee = 1\n[plan]\nterms = 3\n")
    assert set(found) == {"loadfactor.toml line 2", "store.enginee", "plan.terms"}


def test_a_file_that_ends_in_the_middle_of_a_table_is_one_fault() -> None:
    assert list(faults("[store]\n[sources.x\n")) == ["loadfactor.toml line 2"]


def test_what_a_broken_line_would_have_said_is_not_reported_as_missing() -> None:
    assert list(faults("[[classes]]\nname = training\n")) == ["loadfactor.toml line 2"]


def test_a_secret_in_the_file_is_refused_and_not_repeated() -> None:
    text = """
    [sources.a]
    kind = "aws"
    password = "hunter2"
    external_id_env = "hunter2 and more"
    [sources.p]
    kind = "prometheus"
    url = "https://me:hunter2@host/x"
    [sources.z]
    kind = "azure"
    billing = "https://acme.blob.core.windows.net/bills?sig=hunter2"
    [sources.y]
    kind = "azure"
    client_secret_env = "BILLS_SECRET"
    [alert_targets.slack]
    kind = "webhook"
    url_env = "https://hooks.example/hunter2"
    """
    with pytest.raises(ConfigError) as caught:
        parse_config(text, HERE)
    assert {problem.where for problem in caught.value.problems} == {
        "sources.a.password",
        "sources.a.external_id_env",
        "sources.p.url",
        "sources.z.billing",
        "sources.y",  # a secret of no application
        "alert_targets.slack.url_env",
    }
    assert "hunter2" not in str(caught.value)
    assert "_env" in str(caught.value)


def test_a_tag_or_a_source_may_be_named_like_a_secret() -> None:
    text = """
    [sources.token]
    kind = "files"
    paths = "exports"
    [[classes]]
    name = "a"
    match = { tags = { token = ["x"] } }
    """
    assert parse_config(text, HERE).sources["token"].paths == ("exports",)  # type: ignore[union-attr]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "l.toml"
    file.write_bytes(b"\xef\xbb\xbf[prices]\r\nmax_age_days = 9\r\n")
    assert load_config(file).prices.max_age_days == 9


def test_a_file_that_is_not_utf8_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "l.toml"
    file.write_bytes(b'[store]\npath = "\xff"\n')
    with pytest.raises(ConfigError, match="UTF-8"):
        load_config(file)


def test_a_folder_in_place_of_a_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError):
        load_config(tmp_path)


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().prices.max_age_days = 3  # type: ignore[misc]


def test_a_class_without_rules_has_the_defaults_and_comes_last() -> None:
    settings = Settings(classes=(WorkloadClass(name="a", match=MatchRule(account=("1",))),))
    assert settings.class_names == ("a", "unclassified")
    assert settings.workload_class("unclassified").interruptible is False
    assert settings.workload_class("a").match.account == ("1",)


def test_events_are_read_with_what_they_leave_open() -> None:
    text = """
[[events]]
name = "launch"
class = "serve"
from = 2027-03-01
gpus = 32
chance = 0.5
"""
    (event,) = parse_config(text, HERE).events
    assert (event.workload_class, event.from_date, event.until) == ("serve", date(2027, 3, 1), None)
    assert (event.factor, event.gpus, event.chance) == (1.0, 32, 0.5)


def test_every_fault_of_events_is_told_at_its_place() -> None:
    text = """
[plan]
scenarios = 0
[[events]]
name = "a"
from = 2027-03-01
until = 2027-02-01
factor = 0.5
[[events]]
name = "a"
from = 2027-03-01
chance = 1.5
[[events]]
name = "c"
gpus = 8
[[events]]
name = "d"
clas = "x"
from = 2027-03-01
factor = -1
"""
    assert faults(text) == {
        "plan.scenarios": "must be >= 1, is 0 ()",
        'events[0].until (event "a")': "2027-02-01 is not after from, 2027-03-01 (correct a date)",
        'events[1].name (event "a")': ("the name is taken by events[0] (give each its own name)"),
        'events[1] (event "a")': "changes nothing (state a factor or gpus)",
        'events[1].chance (event "a")': "must be <= 1, is 1.5 ()",
        'events[2] (event "c")': "adds gpus to no class (state the class)",
        'events[2].from (event "c")': "is missing (state it)",
        'events[3].clas (event "d")': (
            "unknown key (did you mean class? known: name, class, from, until, factor, gpus, "
            "chance)"
        ),
        'events[3].factor (event "d")': "must be >= 0, is -1 ()",
    }
