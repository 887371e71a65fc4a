"""Figures of plotly as people write them: what they say, and pictures of them.

`PYTHONPATH=guest-packages python3 -P` runs it, too.
"""

import json
import sys

import numpy as np
import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from plotly.subplots import make_subplots

CHART = "application/vnd.isolet.chart.v1+json"


def shown(figure):
    """The chart data of a figure and its picture."""
    if sys.platform == "emscripten":
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            display(figure)  # noqa: F821
        (output,) = captured.outputs
        return output.data.get(CHART), output.data.get("image/png")
    from isolet_charts import plotly as charts

    data = json.loads(figure.to_json())
    return charts.describe(data), charts.draw(data)


def looks(figure, kind, size=None):
    """Checks that a figure has a picture and chart data of a kind; returns the data."""
    chart, picture = shown(figure)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n", picture
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert 200 < width < 4000 and 100 < height < 4000, (width, height)
    assert chart is None if kind is None else chart["type"] == kind, chart
    json.dumps(chart, allow_nan=False)
    return chart


df = pd.DataFrame(
    {
        "day": ["Thu", "Thu", "Fri", "Fri", "Sat", "Sat"] * 4,
        "sex": ["f", "m"] * 12,
        "bill": np.linspace(5, 40, 24),
        "tip": np.sin(np.arange(24)) + 3,
    }
)

chart = looks(px.scatter(df, x="bill", y="tip", color="sex", title="Tips ($) of $5"), "scatter")
assert chart["title"] == "Tips ($) of $5" and chart["x_label"] == "bill"
assert [series["label"] for series in chart["elements"]] == ["f", "m"]
assert chart["elements"][0]["points"][0] == [5, 3]

chart = looks(px.scatter(df, x="bill", y="tip", color="tip", size="bill", log_x=True), "scatter")
assert chart["x_scale"] == "log" and len(chart["elements"][0]["points"]) == 24

chart = looks(px.scatter(df, x="bill", y="tip", facet_col="day", facet_row="sex"), "superchart")
assert len(chart["elements"]) == 6

sums = df.groupby(["day", "sex"], as_index=False)["tip"].sum()
order = {"day": ["Thu", "Fri", "Sat"]}
for mode in ("group", "stack", "relative", "overlay"):
    bars = px.bar(sums, x="day", y="tip", color="sex", barmode=mode, category_orders=order)
    chart = looks(bars, "bar")
    assert chart["x_tick_labels"] == ["Thu", "Fri", "Sat"] and "orientation" not in chart
    assert {element["group"] for element in chart["elements"]} == {"f", "m"}

bars = px.bar(x=[3, 1, 2], y=["a", "b", "c"], orientation="h")
chart = looks(bars.update_yaxes(categoryorder="total ascending"), "bar")
assert chart["orientation"] == "horizontal" and chart["y_tick_labels"] == ["b", "c", "a"]
assert chart["elements"][0] == {"label": "a", "group": None, "value": 3}

chart = looks(go.Figure(go.Pie(labels=["x", "y"], values=[3, 1], hole=0.4)), "pie")
assert chart["elements"][0] == {"label": "x", "angle": 270, "radius": 1}

chart = looks(go.Figure(go.Histogram(x=[1, 1, 2, 2, 2, 3], xbins={"size": 1})), "bar")
assert [element["value"] for element in chart["elements"]] == [2, 3, 1]
looks(px.histogram(df, x="bill", color="sex", marginal="box", nbins=8), "superchart")
chart = looks(px.histogram(df, x="day", y="tip", histfunc="avg"), "bar")
assert [element["label"] for element in chart["elements"]] == ["Thu", "Fri", "Sat"]

chart = looks(go.Figure(go.Box(y=[1, 2, 3, 4, 5, 30], name="all")), "box_and_whisker")
(box,) = chart["elements"]
assert box["median"] == 3.5 and box["outliers"] == [30] and box["label"] == "all"
looks(px.box(df, x="day", y="tip", color="sex", points="all"), "box_and_whisker")
looks(px.violin(df, x="day", y="tip", box=True), "box_and_whisker")
looks(px.strip(df, x="day", y="tip", color="sex"), "box_and_whisker")

chart = looks(px.imshow(df[["bill", "tip"]].corr(), text_auto=".2f"), "unknown")
assert chart["elements"][0] == {"label": "bill", "group": "bill", "value": 1}
looks(go.Figure(go.Heatmap(z=[[1, None], [3, 4]], x=["a", "b"], colorscale="Viridis")), "unknown")
looks(px.density_heatmap(df, x="bill", y="tip"), "unknown")
looks(px.imshow(np.zeros((4, 6, 3), np.uint8)), None)

days = pd.date_range("2026-01-01", periods=12, freq="MS")
lines = pd.DataFrame({"day": days, "a": np.arange(12), "b": np.arange(12) ** 2})
chart = looks(px.line(lines, x="day", y=["a", "b"], markers=True), "line")
assert chart["x_scale"] == "datetime" and chart["elements"][1]["label"] == "b"
assert chart["elements"][1]["points"][2] == ["2026-03-01T00:00:00", 4]
chart = looks(px.area(lines, x="day", y=["a", "b"]), "line")
assert [len(series["points"]) for series in chart["elements"]] == [12, 12]
assert chart["elements"][1]["points"][2][1] == 4  # not with what lies below
looks(px.timeline(lines.head(3), x_start="day", x_end=days[3:6], y="a"), "bar")

both = make_subplots(specs=[[{"secondary_y": True}]])
both.add_trace(go.Bar(x=["a", "b"], y=[1, 2], name="count"))
both.add_trace(go.Scatter(x=["a", "b"], y=[0.1, 0.2], name="share"), secondary_y=True)
chart = looks(both.update_layout(title="Two", template="plotly_dark"), "superchart")
assert [part["type"] for part in chart["elements"]] == ["bar", "line"]

figure = go.Figure(go.Scatter(x=[1, 2, 3], y=[1, 4, 9], fill="tozeroy", name="squares"))
figure.add_hline(y=4, line_dash="dash", annotation_text="limit")
figure.add_vrect(x0=1, x1=2, fillcolor="green", opacity=0.2)
figure.add_annotation(x=2, y=4, text="<b>here</b>", showarrow=True)
looks(figure.update_layout(width=900, height=500), "line")

many = go.Figure(go.Scattergl(x=np.arange(200_000), y=np.zeros(200_000), mode="markers"))
(series,) = looks(many, "scatter")["elements"]
assert len(series["points"]) == 10_000 and series["points_total"] == 200_000

# A part that is not drawn does not stand in the way of the others.
looks(go.Figure([go.Scatter3d(x=[1], y=[1], z=[1]), go.Scatter(y=[1, 2])]), "line")
for figure in (px.sunburst(df, path=["day", "sex"], values="tip"), go.Figure()):
    assert shown(figure) == (None, None)

"drawn"
