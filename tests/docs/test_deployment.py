"""The files of examples/deployment, as the tools say that will read them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.command import rowcall

FOLDER = Path(__file__).parents[2] / "examples" / "deployment"
SETTINGS = (
    "HttpServer:Shutdown:Delay",
    "HttpServer:Shutdown:ConnectionCloseTime",
    "ConnectionSettings:Pool:ShutdownTimeout",
)


def tool(name: str) -> Any:
    return pytest.importorskip(name, reason=f"pip install --group deployment brings {name}")


def accepted(folder: Path, text: str) -> dict[str, Any]:
    """What the command makes of a configuration file, in which it knows every key."""
    (folder / "rowcall.json").write_text(text)
    strict = "--Config:ValidateConfigKeys=Error"
    shown = rowcall(folder, "rowcall.json", strict, "--config", DATABASE_URL="postgresql://somewhere/shop")
    assert (shown.returncode, shown.stderr) == (0, "")
    lines = (line for line in shown.stdout.splitlines() if not line.lstrip().startswith("//"))
    settings: dict[str, Any] = json.loads("\n".join(lines))
    return settings


def seconds(settings: dict[str, Any]) -> float:
    """How long a stop may take."""
    total = 0.0
    for key in SETTINGS:
        value: Any = settings
        for name in key.split(":"):
            value = value[name]
        amount = re.fullmatch(r"([\d.]+) seconds?", value)
        assert amount is not None, value
        total += float(amount[1])
    return total


@pytest.mark.slow
def test_the_image_uses_existing_configuration_keys(tmp_path: Path) -> None:
    settings = accepted(tmp_path, (FOLDER / "container.json").read_text())
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert int(compose["services"]["rowcall"]["stop_grace_period"].removesuffix("s")) > seconds(settings)
    keys = [argument.removeprefix("--") for argument in compose["services"]["rowcall"]["command"]]
    value = dict(key.split("=", 1) for key in keys)
    assert value["CacheOptions:RedisConfiguration"].split(":")[0] in compose["services"]


def test_the_compose_file_is_valid() -> None:
    compose = tool("compose_spec").PyCompose.from_yaml((FOLDER / "compose.yaml").read_text())
    compose.validate()
    assert sorted(compose.service_names()) == ["postgres", "redis", "rowcall"]


def test_compose_connects_without_superuser_and_listens_on_loopback() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    services = compose["services"]
    user = services["rowcall"]["environment"]["DATABASE_URL"].partition("://")[2].partition(":")[0]
    assert user != services["postgres"]["environment"].get("POSTGRES_USER", "postgres")
    assert f"create role {user} login nosuperuser" in (FOLDER / "web-role.sql").read_text()
    assert all(port.startswith("127.0.0.1:") for service in services.values() for port in service.get("ports", ()))
    assert "make dist" in (FOLDER / "compose.yaml").read_text()


def test_hadolint_accepts_the_dockerfile() -> None:
    program = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or shutil.which("hadolint")
    if program is None:
        pytest.skip("pip install --group deployment brings hadolint")
    output = subprocess.run([program, FOLDER / "Dockerfile"], capture_output=True, text=True, check=False)
    assert (output.returncode, output.stdout) == (0, "")


def test_systemd_accepts_the_units_and_rates_their_exposure_as_low(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not here (Debian: systemd)")
    for name in ("rowcall.service", "rowcall.socket"):
        # The program has to be there, which it is not at this place.
        text = (FOLDER / name).read_text().replace("/opt/rowcall/bin/rowcall", sys.executable)
        (tmp_path / name).write_text(text)
    service = tmp_path / "rowcall.service"
    verified = subprocess.run(
        [program, "verify", service, tmp_path / "rowcall.socket"], capture_output=True, text=True, check=False
    )
    about_us = [line for line in verified.stderr.splitlines() if "rowcall" in line]
    assert (verified.returncode, about_us) == (0, [])
    judged = subprocess.run(
        [program, "security", "--offline=true", "--threshold=20", service], capture_output=True, text=True, check=False
    )
    if "unrecognized option" in judged.stderr or "Unknown option" in judged.stderr:
        pytest.skip("this systemd cannot judge a file: it is older than 250")
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]
    stop = re.search(r"^TimeoutStopSec=(\d+)$", service.read_text(), re.MULTILINE)
    assert stop is not None
    assert int(stop[1]) > 2 + 30, "the announcement, and running requests"


@pytest.mark.parametrize("replicas", [1, 3])
def test_the_chart_produces_valid_kubernetes_resources(tmp_path: Path, replicas: int) -> None:
    helm = tool("helm_python.chart")
    kubernetes = tool("kubernetes_validate")
    assert not helm.lint(str(FOLDER / "chart"))["errors"]
    values = {
        "replicas": replicas,
        "settings": {"CacheOptions": {"Enabled": True}, "HttpServer": {"ServerTiming": True}},
    }
    with helm.Chart.load(str(FOLDER / "chart")) as chart:
        rendered = chart.render(values=values, name="shop")
    items = {item["kind"]: item for text in rendered.values() for item in yaml.safe_load_all(text) if item}
    assert sorted(items) == ["ConfigMap", "Deployment", *(["PodDisruptionBudget"] if replicas > 1 else []), "Service"]
    for item in items.values():
        kubernetes.validate(item, kubernetes.latest_version(), strict=True)
    settings = accepted(tmp_path, items["ConfigMap"]["data"]["rowcall.json"])
    assert settings["CacheOptions"]["Enabled"] is True
    assert (settings["HttpServer"]["ServerTiming"], settings["HttpServer"]["Workers"]) == (True, 2)
    pod = items["Deployment"]["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] > seconds(settings)
    (container,) = pod["containers"]
    health = settings["HealthChecks"]
    assert container["readinessProbe"]["httpGet"]["path"] == health["ReadyPath"]
    assert {container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe")} == {health["LivePath"]}
