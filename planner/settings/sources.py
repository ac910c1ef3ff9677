"""Where records come from: one section a source, its keys by its kind."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from planner.settings.base import Count, EnvName, Name, Names, Section


def _without_login(value: str) -> str:
    if "@" in value.partition("://")[2].partition("/")[0]:
        raise ValueError("must not hold a login; name an environment variable in token_env")
    return value


Address = Annotated[Name, AfterValidator(_without_login)]


def _without_signature(value: str) -> str:
    if "?" in value or "sig=" in value.lower():
        raise ValueError("must not hold a signature; credentials come from the environment")
    return value


# Where an export lies in a cloud's own storage.
Place = Annotated[Name, AfterValidator(_without_signature)]


def _in_s3(value: str) -> str:
    if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?", value):
        raise ValueError("must be s3://BUCKET/PREFIX/EXPORT-NAME")
    return value


def _in_google(value: str) -> str:
    table = r"(bigquery://)?[A-Za-z0-9][A-Za-z0-9.:_-]*\.\w+\.[\w-]+"
    if not re.fullmatch(rf"{table}|gs://[a-z0-9][a-z0-9._-]{{1,220}}[a-z0-9](/.*)?", value.strip()):
        raise ValueError("must be bigquery://PROJECT.DATASET.TABLE or gs://BUCKET/FOLDER")
    return value


# The host of an account of Blob Storage, or of its Data Lake form.
_BLOB_HOST = r"[a-z0-9]{3,24}(\.[a-z0-9-]+)*\.(blob|dfs)\.[a-z0-9.-]+"
_IN_AZURE = re.compile(
    rf"https://{_BLOB_HOST}/+[^/]+(/.*)?|abfss?://[^/@:]+@{_BLOB_HOST}(/.*)?"
    r"|https?://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?/+[a-z0-9]{3,24}/+[^/]+(/.*)?",
    re.IGNORECASE,
)


def _in_azure(value: str) -> str:
    if not _IN_AZURE.fullmatch(value.strip()):
        raise ValueError(
            "must be https://ACCOUNT.blob.core.windows.net/CONTAINER/FOLDER or "
            "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
        )
    return value


def _is_role(value: str) -> str:
    if not re.fullmatch(r"arn:aws[a-z-]*:iam::\d{12}:role/.+", value):
        raise ValueError("must be arn:aws:iam::ACCOUNT:role/NAME")
    return value


class Pulled(Section):
    """What every source has whose exports are pulled.

    `months` are the billing periods that are looked at, up to the open one; a bill whose newest
    hour is older than `max_age_days` is warned of.
    """

    months: Annotated[int, Field(ge=1, le=120)] = 13
    max_age_days: Count = 3


class AwsSource(Pulled):
    """An AWS payer or account: export location, role, what to ask for utilization."""

    kind: Literal["aws"]
    billing: Annotated[Name, AfterValidator(_in_s3)] | None = None
    dataset: Literal["cur", "cur2", "focus"] | None = None
    role_arn: Annotated[Name, AfterValidator(_is_role)] | None = None
    external_id_env: EnvName | None = None
    profile: Name | None = None
    accounts: Names = ()
    regions: Names = ()
    utilization: Literal["cloudwatch", "none"] | None = None

    @model_validator(mode="after")
    def _has_a_role(self) -> AwsSource:
        """An external id is asked for by a role."""
        if self.external_id_env and not self.role_arn:
            raise ValueError("external_id_env needs role_arn beside it")
        return self


class GcpSource(Pulled):
    """A Google Cloud billing account: export, who pays for reading it, projects.

    `billing` is bigquery://PROJECT.DATASET.TABLE, or gs://BUCKET/FOLDER of extracts; queries run in
    `job_project`, by default the table's own, and none is billed for more than `max_bytes_billed`
    (100 GiB by default). The rights on `billing_account` are looked at where it is named.
    """

    kind: Literal["gcp"]
    billing: Annotated[Name, AfterValidator(_in_google)] | None = None
    dataset: Literal["standard", "detailed", "focus"] | None = None
    billing_account: Name | None = None
    job_project: Name | None = None
    max_bytes_billed: Annotated[int, Field(ge=1)] | None = None
    projects: Names = ()
    regions: Names = ()
    location: Name | None = None
    impersonate_service_account: Name | None = None
    utilization: Literal["monitoring", "none"] | None = None


class AzureSource(Pulled):
    """An Azure billing scope: export location, how to sign in, subscriptions.

    `billing` is https://ACCOUNT.blob.core.windows.net/CONTAINER/FOLDER, or the abfss:// form.
    """

    kind: Literal["azure"]
    billing: Annotated[Place, AfterValidator(_in_azure)] | None = None
    dataset: Literal["actual", "amortized", "focus"] | None = None
    tenant_id: Name | None = None
    client_id: Name | None = None
    client_secret_env: EnvName | None = None
    subscriptions: Names = ()
    regions: Names = ()
    utilization: Literal["monitor", "none"] | None = None

    @model_validator(mode="after")
    def _has_an_application(self) -> AzureSource:
        """A secret is of an application in a tenant."""
        if self.client_secret_env and not (self.tenant_id and self.client_id):
            raise ValueError("client_secret_env needs tenant_id and client_id beside it")
        return self


class KubernetesSource(Section):
    """A Kubernetes cluster: who holds which GPU."""

    kind: Literal["kubernetes"]
    kubeconfig: Name | None = None
    context: Name | None = None
    cloud: Name | None = None
    account: Name | None = None
    namespaces: Names = ()


class PrometheusSource(Section):
    """A Prometheus with DCGM series: utilization by GPU."""

    kind: Literal["prometheus"]
    url: Address
    token_env: EnvName | None = None
    instance_id_label: Name | None = None
    node_map: Name | None = None
    cloud: Name | None = None
    account: Name | None = None
    step_seconds: Count = 60


class FilesSource(Section):
    """Export files or tables on disk."""

    kind: Literal["files"]
    paths: Annotated[Names, Field(min_length=1)]
    dataset: Name | None = None


Source = Annotated[
    AwsSource | GcpSource | AzureSource | KubernetesSource | PrometheusSource | FilesSource,
    Field(discriminator="kind"),
]
SOURCE_KINDS: dict[str, type[Section]] = {
    "aws": AwsSource,
    "gcp": GcpSource,
    "azure": AzureSource,
    "kubernetes": KubernetesSource,
    "prometheus": PrometheusSource,
    "files": FilesSource,
}
