"""Measures kernels of Jupyter side by side: how long one takes from the start of its process to
the first result, and how long a cell takes on its way there and back.

    measure.py [--starts 20] [--cells 1000] NAME...

NAME is an installed kernel, such as `isolet` or `python3`. The kernels take turns.
"""

import argparse
import contextlib
import json
import os
import pathlib
import queue
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file
from jupyter_client.kernelspec import KernelSpecManager

SECONDS = 60  # that anything may take


def started(spec, directory):
    """A kernel that has answered once: the time when it was started, the process, a client."""
    key = os.urandom(16).hex().encode()
    file, info = write_connection_file(os.path.join(directory, "kernel.json"), key=key)
    argv = [word.replace("{connection_file}", file) for word in spec.argv]
    if argv[0] == "python":  # as Jupyter does
        argv[0] = sys.executable
    environment = {**os.environ, **spec.env, "JPY_PARENT_PID": str(os.getpid())}
    begun = time.perf_counter()
    process = subprocess.Popen(argv, env=environment, stderr=subprocess.DEVNULL)
    # libzmq itself would wait for a while before it tries again.
    for name in ("shell_port", "iopub_port"):
        while not is_open(info[name]):
            assert time.perf_counter() - begun < SECONDS
            time.sleep(0.0005)
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels(stdin=False, hb=False)
    while True:  # until the subscription is in force
        client.kernel_info()
        with contextlib.suppress(queue.Empty):
            client.get_iopub_msg(timeout=0.005)
            return begun, process, client


def is_open(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def run(client, code):
    """Runs a cell until its answer is there and the kernel is idle. The time of its result."""
    message = client.execute(code)
    result = None
    while True:
        published = client.get_iopub_msg(timeout=SECONDS)
        if published["parent_header"].get("msg_id") != message:
            continue
        if published["msg_type"] == "execute_result":
            result = time.perf_counter()
        if published["content"].get("execution_state") == "idle":
            break
    while client.get_shell_msg(timeout=SECONDS)["parent_header"]["msg_id"] != message:
        pass
    return result


def end(process, client):
    client.shutdown()
    client.stop_channels()
    process.wait(SECONDS)


def measured(name, cells):
    spec = KernelSpecManager().get_kernel_spec(name)
    with tempfile.TemporaryDirectory() as directory:
        begun, process, client = started(spec, directory)
        start = run(client, "1+1") - begun
        trips = []
        for _ in range(cells):
            before = time.perf_counter()
            run(client, "1+1")
            trips.append(time.perf_counter() - before)
        memory = resident(process.pid)
        end(process, client)
    return start, trips, memory


def resident(pid):
    """MiB of the process and those beneath it, shared pages in parts."""
    found, total = [pid], 0
    for parent in found:
        for tasks in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            found.extend(map(int, tasks.read_text().split()))
    for each in found:
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{each}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--starts", type=int, default=20)
    options.add_argument("--cells", type=int, default=1000)
    options.add_argument("names", nargs="+")
    given = options.parse_args()
    starts = {name: [] for name in given.names}
    trips = {name: [] for name in given.names}
    memory = dict.fromkeys(given.names, 0.0)
    for round_number in range(given.starts):
        for name in given.names:
            cells = given.cells // given.starts
            start, found, used = measured(name, cells)
            if round_number:  # the first one warms the caches of files
                starts[name].append(start * 1000)
            trips[name] += [each * 1000 for each in found]
            memory[name] = used
    for name in given.names:
        all_trips = sorted(trips[name])
        row = {
            "kernel": name,
            "start_p50_ms": round(statistics.median(starts[name]), 1),
            "start_max_ms": round(max(starts[name]), 1),
            "trip_p50_ms": round(statistics.median(all_trips), 2),
            "trip_p99_ms": round(all_trips[int(len(all_trips) * 0.99)], 2),
            "pss_mib": round(memory[name]),
        }
        print(json.dumps(row))


if __name__ == "__main__":
    main()
