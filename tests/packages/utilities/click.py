"""Runs a command with options."""

import click
from click.testing import CliRunner


@click.command()
@click.option("--times", type=int, default=1)
@click.argument("name")
def hello(times, name):
    click.echo(f"Hello {name}" * times)


assert CliRunner().invoke(hello, ["you", "--times", "2"]).output == "Hello youHello you\n"
assert CliRunner().invoke(hello, ["--times", "x", "you"]).exit_code == 2
