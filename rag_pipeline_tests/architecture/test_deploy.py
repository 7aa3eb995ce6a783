"""Deployment files parse, name settings that exist, and agree with the lock and each other."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from rag_pipeline.core.settings import Settings
from rag_pipeline.orchestration.instance import INSTANCE_SETTINGS

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
ROBOTUTOR = list(
    yaml.safe_load_all((DEPLOY / "helm" / "robotutor.yaml").read_text(encoding="utf-8"))
)
OTHERS = (
    "DAGSTER_PG_",
    "POSTGRES_",
    "PGPASSWORD",
    "QDRANT__",
    "DAGSTER_PASSWORD",
    "QUESTION_LOG_PASSWORD",
    "QDRANT_READ_ONLY_API_KEY",
)  # read by Dagster, Postgres and Qdrant


def locked_version(package: str) -> str:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    match = re.search(rf"^{package}==(\S+)", lock, re.MULTILINE)
    assert match
    return match[1]


def robotutor_container() -> dict[str, Any]:
    (container,) = ROBOTUTOR[0]["spec"]["template"]["spec"]["containers"]
    return container  # type: ignore[no-any-return]  # YAML has no types


def test_every_setting_named_exists() -> None:
    named = {name for service in COMPOSE["services"].values() for name in service["environment"]}
    named |= set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text(encoding="utf-8")))
    for config_map in yaml.safe_load_all((DEPLOY / "helm" / "settings.yaml").read_text("utf-8")):
        named |= set(config_map["data"])
    named |= {variable["name"] for variable in robotutor_container()["env"]}
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    named |= set(re.findall(r"^(?:ENV| {4}) *([A-Z_]+)=", dockerfile, re.MULTILINE))
    settings = {name.upper() for name in Settings.model_fields}
    assert {name for name in named if not name.startswith(OTHERS)} <= settings


def test_services_wait_for_services_that_have_a_health_check() -> None:
    for service in COMPOSE["services"].values():
        for name, condition in service.get("depends_on", {}).items():
            assert condition == {"condition": "service_healthy"}
            assert "healthcheck" in COMPOSE["services"][name]
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or (DEPLOY / source).exists()


def test_robotutor_is_ready_by_its_own_route_and_writes_only_to_memory() -> None:
    service = COMPOSE["services"]["robotutor"]
    assert "http://127.0.0.1:8000/readyz" in service["healthcheck"]["test"][-1]
    assert service["ports"] == ["127.0.0.1:8000:8000"]
    assert service["read_only"]
    assert service["environment"]["DATA_DIR"].startswith(service["tmpfs"][0])
    assert service["environment"]["QUESTION_LOG_URL"].startswith("postgresql://robotutor@question-")


def test_robotutors_pod_service_and_ingress_belong_together() -> None:
    deployment, service, ingress = ROBOTUTOR
    container = robotutor_container()
    assert container["command"] == COMPOSE["services"]["robotutor"]["command"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    (rule,) = ingress["spec"]["rules"]
    hosts = {item["name"]: item.get("value") for item in container["env"]}["SERVE_HOSTS"]
    assert rule["host"] == hosts
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == service["metadata"]["name"]


def test_robotutor_has_the_key_that_may_only_read() -> None:
    key = "QDRANT_READ_ONLY_API_KEY"
    server = COMPOSE["services"]["qdrant"]["environment"]
    assert server["QDRANT__SERVICE__READ_ONLY_API_KEY"].startswith(f"${{{key}:")
    assert COMPOSE["services"]["robotutor"]["environment"]["QDRANT_API_KEY"].startswith(
        f"${{{key}:"
    )
    assert COMPOSE["services"]["code"]["environment"]["QDRANT_API_KEY"].startswith(
        "${QDRANT_API_KEY:"
    )
    (variable,) = [it for it in robotutor_container()["env"] if it["name"] == "QDRANT_API_KEY"]
    assert variable["valueFrom"]["secretKeyRef"]["key"] == key


def test_nothing_listens_beyond_this_host() -> None:
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_instance_settings_are_valid_and_differ_in_storage_and_queue_alone(
    tmp_path: Path,
) -> None:
    here, there = (
        yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in (DEPLOY / "dagster.yaml", INSTANCE_SETTINGS)
    )
    assert "postgres" in here["storage"]
    places = {"storage", "compute_logs"}  # they exist only in a container
    offline = {key: value for key, value in here.items() if key not in places}
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(offline), encoding="utf-8")
    with dg.DagsterInstance.from_config(str(tmp_path)):  # checks against Dagster's schema
        pass
    storage = {"storage", "event_log_storage", "compute_logs", "concurrency"}
    assert {key: value for key, value in here.items() if key not in storage} == {
        key: value for key, value in there.items() if key not in storage
    }


def test_the_workspace_names_the_code_service_and_its_port() -> None:
    workspace = yaml.safe_load((DEPLOY / "workspace.yaml").read_text(encoding="utf-8"))
    server = workspace["load_from"][0]["grpc_server"]
    assert server["host"] in COMPOSE["services"]
    command = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").rpartition("CMD ")[2]
    assert f'"-p", "{server["port"]}"' in command


def test_dagsters_packages_belong_together() -> None:
    major, minor, patch = locked_version("dagster").split(".")
    library = f"0.{int(minor) + 16}.{patch}"  # how Dagster numbers its libraries
    assert major == "1"
    pins = (DEPLOY / "requirements.txt").read_text(encoding="utf-8")
    assert f"dagster-postgres=={library}" in pins
    assert f"dagster-k8s=={library}" in pins
    comment = (DEPLOY / "helm" / "dagster-values.yaml").read_text(encoding="utf-8")
    assert f"--version {locked_version('dagster')} " in comment


def test_one_version_of_the_qdrant_server_near_the_clients() -> None:
    values = yaml.safe_load((DEPLOY / "helm" / "qdrant-values.yaml").read_text(encoding="utf-8"))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    image = COMPOSE["services"]["qdrant"]["image"]
    assert image == f"qdrant/qdrant:{values['image']['tag']}"
    assert f"image: {image} " in workflow
    server_minor = int(values["image"]["tag"].split(".")[1])
    client_minor = int(locked_version("qdrant-client").split(".")[1])
    assert abs(server_minor - client_minor) <= 1  # what the client accepts without a warning


def test_the_image_copies_what_is_there_and_let_through() -> None:
    let_through = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    sources = [
        source
        for line in re.findall(r"^COPY (.+)$", dockerfile, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists()
        parents = [source, *(parent.as_posix() for parent in Path(source).parents)]
        assert any(f"!{name}" in let_through for name in parents), source


def test_compose_accepts_the_file() -> None:
    docker = shutil.which("docker")
    known = docker and subprocess.run(
        [docker, "compose", "version"], capture_output=True, check=False
    )
    if not docker or not known or known.returncode:
        pytest.skip("docker compose is not installed")
    names = (
        "DAGSTER_PASSWORD",
        "QUESTION_LOG_PASSWORD",
        "QDRANT_API_KEY",
        "QDRANT_READ_ONLY_API_KEY",
    )
    secrets = dict.fromkeys(names, "x")
    command = [docker, "compose", "-f", str(DEPLOY / "compose.yaml"), "config", "--quiet"]
    result = subprocess.run(command, env=secrets, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_image_installs_only_files_with_a_known_hash() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert installs
    for line in installs:
        assert "--require-hashes -r deploy/requirements.lock" in line or "--no-deps" in line
    lock = (DEPLOY / "requirements.lock").read_text(encoding="utf-8")
    pins = re.findall(
        r"^[a-z0-9-]+==\S+", (DEPLOY / "requirements.txt").read_text("utf-8"), re.MULTILINE
    )
    assert pins
    for pin in pins:
        assert re.search(rf"^{re.escape(pin)}( |$)", lock, re.MULTILINE)
    assert re.search(rf"^dagster=={re.escape(locked_version('dagster'))} ", lock, re.MULTILINE)


def test_robotutor_cannot_reach_dagster_and_knows_another_password() -> None:
    services = COMPOSE["services"]
    for name in ("postgres", "code", "webserver", "daemon"):
        assert not set(services[name]["networks"]) & set(services["robotutor"]["networks"])
    texts = {name: str(services[name]["environment"]) for name in services}
    assert "DAGSTER_PASSWORD" not in texts["robotutor"]
    assert "QUESTION_LOG_PASSWORD" not in texts["webserver"]


def test_each_database_of_compose_has_its_own_password() -> None:
    passwords = [
        service["environment"]["POSTGRES_PASSWORD"]
        for service in COMPOSE["services"].values()
        if "POSTGRES_PASSWORD" in service["environment"]
    ]
    assert len(passwords) == len(set(passwords)) == 2
    assert all(re.fullmatch(r"\$\{\w+:\?set it in .env\}", password) for password in passwords)


def test_no_pod_of_robotutor_reaches_dagster_or_knows_its_secrets() -> None:
    text = (DEPLOY / "helm" / "network-policies.yaml").read_text("utf-8")
    policies = {policy["metadata"]["name"]: policy["spec"] for policy in yaml.safe_load_all(text)}
    labels = ROBOTUTOR[0]["spec"]["template"]["metadata"]["labels"]
    assert policies["robotutor"]["podSelector"]["matchLabels"] == labels
    for name in ("dagster", "dagster-postgresql"):
        (rule,) = policies[name]["ingress"]
        (source,) = rule["from"]
        assert source["podSelector"]["matchLabels"] == {"app.kubernetes.io/instance": "dagster"}
    allowed = policies["robotutor"]["egress"]
    assert all("dagster" not in str(rule.get("to")) for rule in allowed)
    ports = {port["port"] for rule in allowed for port in rule["ports"]}
    assert ports == {53, 443, 5432, 6333}
    assert policies["robotutor"]["ingress"][0]["ports"] == [
        {"port": robotutor_container()["ports"][0]["containerPort"]}
    ]
    sources = str(robotutor_container()["envFrom"])
    assert "rag-pipeline-state" not in sources


def test_the_action_starts_nothing_in_the_checkout_and_publishes_no_pull_request() -> None:
    steps = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["runs"]["steps"]
    for step in steps:
        if "run" in step:
            assert step["working-directory"] == "${{ runner.temp }}"
            assert not re.search(r"(?<![\w/\"])python (?!-I)", step["run"])
        is_writing = step.get("uses", "").startswith("actions/cache@")
        if is_writing or "qdrant-url" in step.get("if", ""):
            assert "!startsWith(github.event_name, 'pull_request')" in step["if"]
    install = next(step["run"] for step in steps if step.get("name") == "Install rag-pipeline")
    assert "--require-hashes" in install
    assert "--no-deps" in install
