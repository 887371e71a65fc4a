"""`isolet jupyter install` and `uninstall`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Kernel, isolet
from jupyter_client.kernelspec import KernelSpecManager


def test_jupyter_finds_the_kernel(directory: Path) -> None:
    spec = KernelSpecManager().get_kernel_spec("isolet")
    assert Path(spec.resource_dir) == directory / "data" / "kernels" / "isolet"
    assert (spec.language, spec.interrupt_mode, spec.display_name) == (
        "python",
        "message",
        "Python (isolet)",
    )
    assert Path(spec.argv[0]).is_absolute()
    names = {path.name for path in Path(spec.resource_dir).iterdir()}
    assert names == {"kernel.json", "logo-32x32.png", "logo-64x64.png", "logo-svg.svg"}


def test_a_kernelspec_is_replaced_only_on_purpose(tmp_path: Path) -> None:
    place = ["jupyter", "install", "--prefix", str(tmp_path)]
    spec = tmp_path / "share" / "jupyter" / "kernels" / "isolet"
    isolet(*place)
    ran = isolet(*place, "--", "--timeout=5s", check=False)
    assert ran.returncode != 0
    assert f"`{spec}` is there already; `--replace` takes its place" in ran.stderr
    isolet(*place, "--replace", "--display-name=Mine", "--", "--timeout=5s")
    written = json.loads((spec / "kernel.json").read_text())
    assert "--timeout=5s" in written["argv"]
    assert written["display_name"] == "Mine"
    isolet("jupyter", "uninstall", "--prefix", str(tmp_path))
    assert not spec.exists()


def test_what_is_not_isolets_is_not_removed(tmp_path: Path) -> None:
    spec = tmp_path / "share" / "jupyter" / "kernels" / "other" / "kernel.json"
    spec.parent.mkdir(parents=True)
    spec.write_text('{"argv": ["python"], "display_name": "x", "language": "python"}')
    ran = isolet("jupyter", "uninstall", "--prefix", str(tmp_path), "--name=other", check=False)
    assert ran.returncode != 0
    assert "is not of `isolet jupyter install`" in ran.stderr
    assert spec.exists()


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--mount=/no/such/directory:/data", "/no/such/directory"),
        ("--allow-net=a b", "a b"),
        ("--export=/data=out", "`--export /data=out` is not for a kernel"),
        ("--memory=1KiB", "memory"),
        ("--no-such-option", "--no-such-option"),
        ("word", "word"),
        ("--with=no-such-package-of-anybody", "no-such-package-of-anybody"),
    ],
)
def test_a_bad_option_fails_at_once(tmp_path: Path, option: str, reason: str) -> None:
    ran = isolet("jupyter", "install", "--prefix", str(tmp_path), "--", option, check=False)
    assert ran.returncode != 0
    assert reason in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_not_a_path(tmp_path: Path) -> None:
    ran = isolet("jupyter", "install", f"--prefix={tmp_path}", "--name=../a", check=False)
    assert ran.returncode != 0
    assert "is no name of a kernel" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_connection_file_without_a_key_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "connection.json"
    ports = {f"{name}_port": 0 for name in ("shell", "control", "stdin", "iopub", "hb")}
    file.write_text(json.dumps({"ip": "127.0.0.1", "key": "", **ports}))
    ran = isolet("jupyter", "kernel", f"--connection-file={file}", check=False)
    assert ran.returncode != 0
    assert "has no key: anybody who can connect could run cells" in ran.stderr


def test_sockets_may_be_files(directory: Path) -> None:
    kernel = Kernel.__new__(Kernel)
    from jupyter_client.manager import KernelManager

    kernel.manager = KernelManager(kernel_name="isolet", transport="ipc")
    kernel.manager.start_kernel()
    kernel.client = kernel.manager.client()
    kernel.client.start_channels()
    kernel.client.wait_for_ready(timeout=60)
    try:
        assert kernel.value("6 * 7") == "42"
    finally:
        kernel.stop()
