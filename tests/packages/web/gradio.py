"""Calls the function of an interface."""

import gradio as gr

assert gr.Interface(lambda name: "Hi " + name, "text", "text")("Ann") == "Hi Ann"
