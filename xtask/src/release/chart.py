"""Checks deploy/helm: what `helm lint` says, and that it renders to what deploy/kubernetes has."""

import copy
import pathlib
import shutil
import sys
import tempfile

import kubernetes_validate
import yaml
from helm_python import chart as helm
from helm_python.errors import HelmError

deploy, version = pathlib.Path(sys.argv[1]), sys.argv[2]
# With files in place of links, as `helm package` has it, which tells of each link.
copied = tempfile.TemporaryDirectory()
directory = pathlib.Path(copied.name) / "isolet"
shutil.copytree(deploy / "helm", directory)
KUBERNETES = "1.37"
IMAGE = "registry.example/isolet"


def by_name(objects):
    return {(one["kind"], one["metadata"]["name"]): one for one in objects if one}


def rendered(namespace="isolet", **values):
    values = {"image": {"repository": IMAGE}} | values
    with helm.Chart.load(directory) as chart:
        made = chart.render(values=values, name="example", namespace=namespace)
    notes = made.pop("isolet/templates/NOTES.txt")
    assert f"http://isolet-router.{namespace} " in notes, notes
    return by_name(one for text in made.values() for one in yaml.safe_load_all(text))


def written(*names):
    texts = [(deploy / "kubernetes" / name).read_text() for name in names]
    return by_name(one for text in texts for one in yaml.safe_load_all(text))


def container(objects, kind, name):
    return objects[kind, name]["spec"]["template"]["spec"]["containers"][0]


report = helm.lint(directory, {"image": {"repository": IMAGE}}, strict=True, quiet=True)
assert not report["errors"], report
with helm.Chart.load(directory) as chart:
    said = chart.metadata
assert (said["version"], said["appVersion"]) == (version, version), said

# With autoscaling, and names and images apart, it is the same as by `kubectl apply -k`.
own = written("statefulset.yaml", "router.yaml", "autoscaling.yaml", "network-policies.yaml")
made = rendered(autoscaling={"enabled": True})
added = {("ConfigMap", "isolet-router"), ("Secret", "isolet-node")}
assert set(made) == set(own) | added, set(made) ^ set(own)
node = container(made, "StatefulSet", "isolet")
assert node["image"] == f"{IMAGE}:{version}", node["image"]
plain = copy.deepcopy(made)
container(plain, "StatefulSet", "isolet").update(image="isolet")
del container(plain, "StatefulSet", "isolet")["imagePullPolicy"]
container(plain, "Deployment", "isolet-router").update(image="nginx")
for key, one in own.items():
    assert plain[key]["spec"] == one["spec"], (key, plain[key]["spec"], one["spec"])
    assert one["metadata"].get("labels", {}).items() <= plain[key]["metadata"]["labels"].items()
files = made["ConfigMap", "isolet-router"]["data"]
for name, path in (("nginx.conf", "nginx.conf"), ("nodes.conf", "nodes-kubernetes.conf")):
    assert files[name].strip() == (deploy / "nginx" / path).read_text().strip(), name

# What the values change.
made = rendered(
    namespace="prod",
    config="[tenants.a]\nkeys = []",
    internet=True,
    require=["seccomp"],
    image={"repository": IMAGE, "tag": "9"},
    node={"replicas": 5},
)
assert ("HorizontalPodAutoscaler", "isolet") not in made
assert made["StatefulSet", "isolet"]["spec"]["replicas"] == 5
node = container(made, "StatefulSet", "isolet")
assert node["image"] == f"{IMAGE}:9" and "--require=seccomp" in node["args"], node
assert made["Secret", "isolet-node"]["stringData"]["node.toml"] == "[tenants.a]\nkeys = []"
assert ("NetworkPolicy", "isolet-internet") in made
names = made["ConfigMap", "isolet-router"]["data"]["nodes.conf"]
assert ".prod.svc" in names and ".isolet.svc" not in names, names
for one in made.values():
    assert "namespace" not in one["metadata"], one["metadata"]
    kubernetes_validate.validate(one, KUBERNETES, strict=True)
made = rendered(existingSecret="mine", networkPolicies=False)
assert not {kind for kind, _ in made} & {"Secret", "NetworkPolicy"}
secrets = [one for one in made["StatefulSet", "isolet"]["spec"]["template"]["spec"]["volumes"]]
assert secrets[0]["secret"]["secretName"] == "mine", secrets

# A misspelt value is refused, and an image that nobody has named.
for words, values in (("replica", {"replica": 3}), ("set image.repository to", {"image": {}})):
    try:
        rendered(**values)
    except HelmError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{values} was taken")
