"""Runs an app of a few lines in its own test."""
# With: tornado

from streamlit.testing.v1 import AppTest

app = AppTest.from_string("import streamlit as st; st.title('Hi')").run()
assert app.title[0].value == "Hi"
