"""Makes an agent with a role."""

from crewai import Agent

assert Agent(role="cook", goal="cook", backstory="none").role == "cook"
