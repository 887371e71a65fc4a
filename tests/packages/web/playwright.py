"""Opens a browser."""

from playwright.sync_api import sync_playwright

with sync_playwright() as playwright:
    assert playwright.chromium.launch().version
