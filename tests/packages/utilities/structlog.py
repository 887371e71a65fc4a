"""Logs events as JSON."""

import io
import json

import structlog

file = io.StringIO()
structlog.configure(
    processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()],
    logger_factory=structlog.PrintLoggerFactory(file),
)
structlog.get_logger().bind(user=1).info("in")
assert json.loads(file.getvalue()) == {"user": 1, "event": "in", "level": "info"}
