"""Runs pip with the environment markers of another interpreter, which it has no option for."""

import json
import sys

# Nothing is imported from the working directory.
sys.path[:] = [path for path in sys.path if path]

from pip._vendor.packaging import markers

environment = json.loads(sys.argv.pop(1))
markers.default_environment = lambda: dict(environment)

from pip._internal.cli.main import main

sys.exit(main())
