"""Saves a chart of plotly as PNG, by a browser."""
# With: plotly

import plotly.graph_objects as go

assert go.Figure(go.Bar(y=[1, 2])).to_image("png").startswith(b"\x89PNG")
