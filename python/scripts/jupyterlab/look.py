"""Opens notebooks of isolet's kernel in JupyterLab, runs their cells as a person does, and keeps a
picture of each: a plot, a table, a chart of plotly, `input()`, a widget, and output that tries to
run in the page.

    look.py [--wheels DIR] [--pictures DIR]

It needs the packages `jupyterlab`, `plotly` and `ipywidgets` beside this Python, the `isolet`
command on PATH, Chromium, and `playwright-core` where node finds it (NODE_PATH). DIR has Pyodide's
wheels of numpy, pandas and matplotlib, if isolet has no other way to them.
"""

import argparse
import json
import os
import pathlib
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time

PACKAGES = "numpy,pandas,matplotlib,plotly,ipywidgets"
CELLS = {
    "plot": """\
%matplotlib inline
import matplotlib.pyplot as plt, numpy as np, pandas as pd
t = np.linspace(0, 6, 200)
plt.figure(figsize=(5, 2))
plt.plot(t, np.sin(t), label="sine")
plt.legend();""",
    "table": 'pd.DataFrame({"planet": ["Mars", "Earth"], "moons": [2, 1]})',
    "chart": """\
import plotly.graph_objects as go
go.Figure(go.Bar(x=["a", "b", "c"], y=[3, 1, 2]), layout={"height": 250, "width": 500})""",
    "input": 'print("Hello,", input("your name? "))',
    "widget": """\
import ipywidgets
slider, label = ipywidgets.IntSlider(value=7), ipywidgets.Label("move it")
slider.observe(lambda change: setattr(label, "value", f"squared: {change['new'] ** 2}"), "value")
ipywidgets.VBox([slider, label])""",
    "page": """\
display({"text/html": "<script>document.body.dataset.owned = 1</script><b>bold</b>"}, raw=True)
display({"application/javascript": "document.body.dataset.owned = 1"}, raw=True)""",
    "update": """\
handle = display("working", display_id=True)
for step in range(3): handle.update(f"step {step}")""",
}
# What the page has to have in the end, by the kernel.
EXPECTED = {
    "isolet": {"owned": False, "slider": False},
    "isolet-trusted": {"owned": True, "slider": True},
}


def notebook(kernel):
    cells = [
        {"cell_type": "code", "id": name, "metadata": {}, "source": source, "outputs": []}
        | {"execution_count": None}
        for name, source in CELLS.items()
    ]
    spec = {"name": kernel, "display_name": kernel, "language": "python"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": spec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--wheels")
    options.add_argument("--pictures", default=".")
    given = options.parse_args()
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser is not None, "there is no Chromium"
    pictures = pathlib.Path(given.pictures).resolve()
    with tempfile.TemporaryDirectory() as directory, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        token = secrets.token_hex()
        environment = os.environ | {
            "JUPYTER_DATA_DIR": f"{directory}/data",
            "JUPYTER_CONFIG_DIR": f"{directory}/config",
            "JUPYTER_RUNTIME_DIR": f"{directory}/runtime",
        }
        wheels = ["--wheels", given.wheels] if given.wheels else []
        for kernel in EXPECTED:
            trust = ["--trust-output"] if kernel != "isolet" else []
            install = ["isolet", "jupyter", "install", "--name", kernel, "--", *wheels, *trust]
            subprocess.run([*install, "--with", PACKAGES], check=True, env=environment)
            path = pathlib.Path(directory, f"{kernel}.ipynb")
            path.write_text(json.dumps(notebook(kernel)))
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
                *("--ip=127.0.0.1", f"--port={port}", f"--IdentityProvider.token={token}"),
                f"--notebook-dir={directory}",
            ],
            env=environment,
        )
        try:
            wait_for(port)
            for kernel, expected in EXPECTED.items():
                look(browser, f"http://127.0.0.1:{port}", token, kernel, pictures, expected)
        finally:
            server.terminate()
            server.wait(30)


def wait_for(port):
    end = time.monotonic() + 60
    with_connection = ("127.0.0.1", port)
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(with_connection) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError("JupyterLab does not start")


def look(browser, server, token, kernel, pictures, expected):
    picture = str(pictures / f"{kernel}.png")
    script = str(pathlib.Path(__file__).with_name("look.mjs"))
    ran = subprocess.run(
        ["node", script, browser, server, token, kernel, picture],
        check=True,
        stdout=subprocess.PIPE,
        timeout=240,
    )
    seen = json.loads(ran.stdout)
    print(json.dumps(seen, indent=1))
    texts = seen["outputs"]
    assert seen["picture"], "the plot is missing"
    assert seen["chart"], "the chart is missing"
    assert "Mars" in texts["table"]
    assert "Hello, Ada" in texts["input"]
    assert texts["update"].strip() == "'step 2'"
    assert seen["owned"] == expected["owned"], "the page was reached, or was not"
    assert seen["slider"] == expected["slider"]
    assert ("squared: 81" in texts["widget"]) == expected["slider"]
    print(f"{kernel}: as expected; see {picture}")


if __name__ == "__main__":
    main()
