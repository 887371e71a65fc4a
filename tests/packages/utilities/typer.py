"""Runs a command whose options are a function's parameters."""

import typer
from typer.testing import CliRunner

app = typer.Typer()


@app.command()
def hello(name: str, times: int = 1):
    typer.echo(f"Hello {name}" * times)


assert CliRunner().invoke(app, ["you", "--times", "2"]).stdout == "Hello youHello you\n"
