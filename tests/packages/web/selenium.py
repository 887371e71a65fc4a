"""Opens a browser."""

from selenium import webdriver

assert webdriver.Chrome().title == ""
