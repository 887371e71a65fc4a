"""Runs an app of the terminal in its own test."""

import asyncio

from textual.app import App
from textual.widgets import Button


class Demo(App):
    pressed = 0

    def compose(self):
        yield Button("Go")

    def on_button_pressed(self):
        self.pressed += 1


async def main():
    app = Demo()
    async with app.run_test() as pilot:
        await pilot.click(Button)
        assert app.pressed == 1


asyncio.run(main())
