"""Reads settings from the environment and from a file."""

import os

from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_file=".env", env_prefix="app_")
    port: int
    name: str = "x"


open(".env", "w").write("APP_NAME=sea\n")
os.environ["APP_PORT"] = "80"
assert Settings().model_dump() == {"port": 80, "name": "sea"}
