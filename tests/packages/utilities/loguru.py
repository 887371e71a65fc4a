"""Logs to a file, with a traceback."""

from loguru import logger

logger.remove()
logger.add("a.log", format="{level} {message}", enqueue=False)
logger.bind(user=1).warning("low {}", 3)
try:
    int("x")
except ValueError:
    logger.exception("bad")
text = open("a.log").read()
assert text.startswith("WARNING low 3\nERROR bad\n") and "ValueError" in text
