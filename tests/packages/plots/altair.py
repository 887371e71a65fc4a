"""Makes a chart as Vega-Lite."""
# With: jsonschema<4.18

import altair as alt

data = alt.Data(values=[{"x": "a", "y": 1}, {"x": "b", "y": 2}])
chart = alt.Chart(data).mark_bar().encode(x="x:N", y="y:Q")
assert chart.to_dict()["mark"]["type"] == "bar"
assert "vegaEmbed" in chart.to_html()
