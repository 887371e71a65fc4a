"""Runs a test that waits."""
# With: pytest

import pytest

open("test_a.py", "w").write(
    "import asyncio, pytest\n"
    "@pytest.mark.asyncio\n"
    "async def test_a():\n"
    "    await asyncio.sleep(0)\n"
)
assert pytest.main(["-q", "-p", "pytest_asyncio", "test_a.py"]) == 0
