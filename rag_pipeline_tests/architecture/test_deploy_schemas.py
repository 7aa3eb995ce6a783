"""Deployment files fit the schemas of the programs that read them, and run with few rights."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from pydantic import SecretStr

from rag_pipeline.core.settings import Settings
from rag_pipeline.serving.limits import MAX_BODY_BYTES

DEPLOY = Path(__file__).parents[2] / "deploy"
KUBERNETES = "1.34"
PIPELINE = ("code", "webserver", "daemon", "robotutor")
SECRETS = {
    name.upper()
    for name, field in Settings.model_fields.items()
    if field.annotation is SecretStr or name in {"database_url", "question_log_url"}
}

# The keys of Dagster's chart that the values use, as its schema names them (helm/dagster/schema in
# Dagster's repository). No package contains the schema itself.
CHART = {
    "telemetry": {"enabled"},
    "dagster-user-deployments": {"enabled", "enableSubchart", "deployments"},
    "dagster-user-deployments.deployments": {
        *("name", "image", "codeServerArgs", "port", "envConfigMaps", "envSecrets"),
        *("volumes", "volumeMounts", "podSecurityContext", "securityContext", "resources"),
        *("includeConfigInLaunchedRuns", "livenessProbe", "startupProbe", "readinessProbe"),
    },
    "runLauncher": {"type", "config"},
    "runLauncher.config": {"k8sRunLauncher"},
    "runLauncher.config.k8sRunLauncher": {
        *("imagePullPolicy", "envConfigMaps", "envSecrets", "volumes", "volumeMounts"),
        *("securityContext", "resources", "runK8sConfig"),
    },
    "runLauncher.config.k8sRunLauncher.runK8sConfig": {"jobSpecConfig", "podSpecConfig"},
    "dagsterWebserver": {"resources"},
    "dagsterDaemon": {"resources", "runCoordinator", "runMonitoring"},
    "dagsterDaemon.runCoordinator": {"enabled", "type", "config"},
    "dagsterDaemon.runCoordinator.config": {"queuedRunCoordinator"},
    "dagsterDaemon.runCoordinator.config.queuedRunCoordinator": {
        "maxConcurrentRuns",
        "tagConcurrencyLimits",
    },
    "retention": {"enabled", "sensor", "schedule"},
    "retention.sensor": {"purgeAfterDays"},
    "retention.sensor.purgeAfterDays": {"skipped", "success", "failure", "started"},
    "retention.schedule": {"purgeAfterDays"},
    "postgresql": {"enabled"},
    "generatePostgresqlPasswordSecret": set(),
}


def read(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / name).read_text(encoding="utf-8")))


COMPOSE = read("compose.yaml")[0]
VALUES = read("helm/dagster-values.yaml")[0]
MANIFESTS = [*read("helm/settings.yaml"), *read("helm/robotutor.yaml")]
(CODE,) = VALUES["dagster-user-deployments"]["deployments"]
LAUNCHER = VALUES["runLauncher"]["config"]["k8sRunLauncher"]


def pod(values: dict[str, Any], pod_security: dict[str, Any]) -> dict[str, Any]:
    """The pod that the chart makes of the values of a code location or of runs."""
    probes = {key: copy.deepcopy(values[key]) for key in values if key.endswith("Probe")}
    for probe in probes.values():
        probe.pop("enabled", None)  # read by the chart
    container = {
        "name": "container",
        "image": "registry.example.org/rag-pipeline:0.1.0",
        "envFrom": [
            *({"configMapRef": source} for source in values["envConfigMaps"]),
            *({"secretRef": source} for source in values["envSecrets"]),
        ],
        **{key: values[key] for key in ("securityContext", "resources", "volumeMounts")},
        **probes,
    }
    spec = {
        "securityContext": pod_security,
        "volumes": values["volumes"],
        "containers": [container],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}


PODS = [
    pod(CODE, CODE["podSecurityContext"]),
    pod(LAUNCHER, LAUNCHER["runK8sConfig"]["podSpecConfig"]["securityContext"]),
]
ROBOTUTOR = next(one for one in MANIFESTS if one["kind"] == "Deployment")


def compose_errors(compose: dict[str, Any]) -> list[str]:
    folder = resources.files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text(encoding="utf-8"))
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(compose)]


def test_the_compose_file_fits_the_schema_of_compose() -> None:
    assert compose_errors(COMPOSE) == []
    wrong = copy.deepcopy(COMPOSE)
    wrong["services"]["code"]["ports"] = "4000"
    assert compose_errors(wrong)


@pytest.mark.parametrize(
    "manifest", [*MANIFESTS, *PODS], ids=lambda one: f"{one['kind']}-{one['metadata']['name']}"
)
def test_each_object_fits_the_schema_of_kubernetes(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_refused() -> None:
    wrong = copy.deepcopy(ROBOTUTOR)
    wrong["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


def test_the_chart_knows_each_key_of_the_values() -> None:
    assert set(VALUES) == {path for path in CHART if "." not in path}
    for path, keys in CHART.items():
        node: Any = VALUES
        for part in path.split("."):
            node = node[part]
        for one in node if isinstance(node, list) else [node]:
            assert not isinstance(one, dict) or set(one) <= keys, path


def test_runs_have_the_settings_of_the_code_location_and_resources_of_their_own() -> None:
    # The chart would give the resources of the code location to the runs too, where they win.
    assert CODE["includeConfigInLaunchedRuns"] == {"enabled": False}
    for key in ("envConfigMaps", "envSecrets", "volumes", "volumeMounts", "securityContext"):
        assert LAUNCHER[key] == CODE[key]
    assert LAUNCHER["resources"] != CODE["resources"]


def test_runs_on_several_hosts_share_their_state_by_name() -> None:
    maps = {one["metadata"]["name"]: one["data"] for one in MANIFESTS if one["kind"] == "ConfigMap"}
    named = [source["name"] for source in LAUNCHER["envConfigMaps"]]
    shared = {key: value for name in named for key, value in maps[name].items()}
    assert shared["STATE_NAME"]
    secret = (DEPLOY / "README.md").read_text(encoding="utf-8").partition("## Kubernetes")[2]
    assert "generic rag-pipeline-state" in secret
    assert "DATABASE_URL=" in secret
    assert {"name": "rag-pipeline-state"} in LAUNCHER["envSecrets"]


def test_no_file_contains_a_secret() -> None:
    for service in COMPOSE["services"].values():
        for name, value in service["environment"].items():
            if name in SECRETS | {"PGPASSWORD"} or name.endswith(("_PASSWORD", "_KEY")):
                assert value.startswith("${") or ":" not in value.partition("//")[2], name
    for manifest in MANIFESTS:
        assert manifest["kind"] != "Secret"
        assert not SECRETS & set(manifest.get("data", {}))
    (container,) = ROBOTUTOR["spec"]["template"]["spec"]["containers"]
    assert not SECRETS & {one["name"] for one in container["env"] if "value" in one}


@pytest.mark.parametrize("name", PIPELINE)
def test_each_container_of_ours_has_few_rights_and_a_limit_of_memory(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["user"] == "1000"
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "healthcheck"} <= set(service)


@pytest.mark.parametrize(
    "spec", [one["spec"] for one in PODS] + [ROBOTUTOR["spec"]["template"]["spec"]]
)
def test_each_pod_of_ours_has_few_rights_and_a_limit_of_memory(spec: dict[str, Any]) -> None:
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] == 1000
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} == set(container["resources"]["requests"])
    assert "memory" in container["resources"]["limits"]


def test_the_image_does_not_run_as_root() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert "USER 1000" in lines  # Kubernetes cannot compare a name with root


def test_the_queue_of_the_chart_has_the_limits_of_the_instance_settings() -> None:
    chart = VALUES["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    runs = read("dagster.yaml")[0]["concurrency"]["runs"]
    assert chart["maxConcurrentRuns"] == runs["max_concurrent_runs"]


def test_the_ingress_hides_the_metrics() -> None:
    ingress = next(one for one in MANIFESTS if one["kind"] == "Ingress")
    (rule,) = ingress["spec"]["rules"]
    assert {path["path"] for path in rule["http"]["paths"]} == {"/v1", "/mcp"}
    assert ingress["spec"]["tls"][0]["hosts"] == [rule["host"]]


def test_the_proxies_have_the_limits_of_the_service() -> None:
    ingress = next(one for one in MANIFESTS if one["kind"] == "Ingress")
    size = f"{MAX_BODY_BYTES // 1024}k"
    assert ingress["metadata"]["annotations"]["nginx.ingress.kubernetes.io/proxy-body-size"] == size
    nginx = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert f"client_max_body_size {size};" in nginx
    guide = (DEPLOY.parent / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8")
    nginx = nginx.replace("http://robotutor;", "http://127.0.0.1:8000;")
    location = nginx[nginx.index("    location / {") : nginx.index("    location = /metrics")]
    for line in location.splitlines():
        if "Connection" not in line:  # needed only with the upstream of the file
            assert line.partition("#")[0].strip() in guide


def test_nginx_accepts_its_configuration(tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if not nginx:
        pytest.skip("nginx is not installed")
    config = tmp_path / "nginx.conf"
    places = " ".join(
        f"{name}_temp_path {tmp_path}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config.write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}} "
        f"http {{ access_log off; {places} include {DEPLOY / 'nginx.conf'}; }}",
        encoding="utf-8",
    )
    command = [nginx, "-t", "-p", str(tmp_path), "-c", str(config)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
