"""A first script for isolet: cargo xtask run examples/hello.py"""

import asyncio
import json
import sys
from dataclasses import asdict, dataclass


@dataclass
class Planet:
    name: str
    moons: int
    distance: float  # from the sun, in astronomical units


async def light(planet: Planet) -> str:
    """Tells how long sunlight travels; a thousandth of a second stands for a minute."""
    minutes = planet.distance * 8.317
    await asyncio.sleep(minutes / 1000)
    return f"{planet.name:8} after {minutes:4.1f} minutes"


planets = [Planet("Mars", 2, 1.524), Planet("Earth", 1, 1.0), Planet("Mercury", 0, 0.387)]

print(f"Hello from Python {sys.version.split()[0]} on {sys.platform}")
print("Sunlight arrives at")
for arrival in asyncio.as_completed([light(planet) for planet in planets]):
    print(" ", await arrival)
print(json.dumps([asdict(planet) for planet in planets if planet.moons]))
