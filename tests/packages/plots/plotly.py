"""Makes a chart as JSON and as a page of HTML."""

import json

import plotly.graph_objects as go

figure = go.Figure(go.Scatter(x=[1, 2, 3], y=[1, 4, 9]), layout={"title": "Squares"})
assert json.loads(figure.to_json())["data"][0]["type"] == "scatter"
assert "Plotly.newPlot" in figure.to_html(include_plotlyjs="cdn")
