"""Charts of altair as people write them: what they say, and pictures of them.

`PYTHONPATH=guest-packages python3 -P` runs it, too.
"""

import json
import sys

import altair as alt
import numpy as np
import pandas as pd

CHART = "application/vnd.isolet.chart.v1+json"


def shown(made):
    """The chart data of a chart and its picture."""
    if sys.platform == "emscripten":
        from IPython.utils.capture import capture_output

        with capture_output() as captured:
            display(made)  # noqa: F821
        (output,) = captured.outputs
        assert "vegaEmbed" in output.data["text/html"]
        assert "$schema" in output.data["application/vnd.vegalite.v6+json"]
        return output.data.get(CHART), output.data.get("image/png")
    from isolet_charts import vega as charts

    return charts.describe(made.to_dict()), charts.draw(made.to_dict())


def looks(made, kind):
    """Checks that a chart has a picture and chart data of a kind; returns the data."""
    chart, picture = shown(made)
    assert picture[:8] == b"\x89PNG\r\n\x1a\n", picture
    width, height = (int.from_bytes(picture[at : at + 4], "big") for at in (16, 20))
    assert 40 < width < 4000 and 40 < height < 4000, (width, height)
    assert chart["type"] == kind, chart
    json.dumps(chart, allow_nan=False)
    return chart


df = pd.DataFrame(
    {
        "city": ["Oslo", "Rome", "Bonn"] * 8,
        "kind": ["p", "q"] * 12,
        "x": np.linspace(1, 10, 24),
        "y": np.cos(np.arange(24)) + 2,
        "day": pd.date_range("2026-01-10", periods=24, freq="15D"),
    }
)
base = alt.Chart(df)

chart = looks(base.mark_bar().encode(x="city", y="count()").properties(title="Rows ($1)"), "bar")
assert chart["title"] == "Rows ($1)" and chart["y_label"] == "Count of Records"
assert chart["x_tick_labels"] == ["Bonn", "Oslo", "Rome"]
assert chart["elements"][0] == {"label": "Bonn", "group": None, "value": 8}

chart = looks(base.mark_bar().encode(x="sum(x)", y=alt.Y("city", sort="-x")), "bar")
assert chart["orientation"] == "horizontal" and chart["y_tick_labels"] == ["Bonn", "Rome", "Oslo"]

for stack in ("zero", "normalize", "center", None):
    chart = base.mark_bar().encode(x="city", y=alt.Y("sum(y)", stack=stack), color="kind")
    assert {one["group"] for one in looks(chart, "bar")["elements"]} == {"p", "q"}
looks(base.mark_bar().encode(x="city", xOffset="kind", y="mean(y)", color="kind"), "bar")

chart = looks(base.mark_bar().encode(alt.X("x", bin=alt.Bin(maxbins=5)), y="count()"), "bar")
assert [one["label"] for one in chart["elements"]] == ["1", "3", "5", "7", "9"]
assert sum(one["value"] for one in chart["elements"]) == 24

chart = looks(base.mark_point().encode(x="x", y="y", color="city", shape="city"), "scatter")
assert [series["label"] for series in chart["elements"]] == ["Bonn", "Oslo", "Rome"]
looks(base.mark_circle().encode(x="x", y="y", size="y", color="x").interactive(), "scatter")
looks(base.mark_tick().encode(x="x", y="city"), "scatter")

chart = looks(base.mark_line(point=True).encode(x="day", y="y", color="kind"), "line")
assert chart["x_scale"] == "datetime"
assert chart["elements"][0]["points"][0] == ["2026-01-10T00:00:00", 3]
chart = looks(base.mark_line().encode(x="yearmonth(day):T", y="mean(x)"), "line")
assert chart["elements"][0]["points"][0][0] == "2026-01-01T00:00:00"
chart = looks(base.mark_bar().encode(x="month(day):O", y="sum(x)"), "bar")
assert chart["x_tick_labels"][:3] == ["Jan", "Feb", "Mar"]
looks(base.mark_area().encode(x="day", y="y", color="kind"), "line")
log = alt.Y("y", scale=alt.Scale(type="log"))
assert looks(base.mark_line().encode(x="x", y=log), "line")["y_scale"] == "log"

grid = base.mark_rect().encode(x="city", y="kind", color="mean(y)")
chart = looks(grid + grid.mark_text().encode(text=alt.Text("mean(y)", format=".1f")), "unknown")
assert chart["elements"][0]["label"] == "Bonn" and chart["elements"][0]["group"] == "p"

chart = looks(base.mark_arc(innerRadius=40).encode(theta="count()", color="city"), "pie")
assert [one["angle"] for one in chart["elements"]] == [120, 120, 120]

chart = looks(base.mark_boxplot().encode(x="city", y="x"), "box_and_whisker")
assert [one["label"] for one in chart["elements"]] == ["Oslo", "Rome", "Bonn"]
looks(base.mark_line().encode(x="x", y="y") + base.mark_rule().encode(y="mean(y)"), "line")
bars = alt.Chart(pd.DataFrame({"a": ["u", "v"], "b": [2, -1]})).encode(x="a", y="b")
colors = alt.condition(alt.datum.b > 0, alt.value("steelblue"), alt.value("orange"))
looks(bars.mark_bar().encode(color=colors) + bars.mark_text(dy=-6).encode(text="b"), "bar")
looks(
    base.mark_errorbar().encode(x="city", y="y") + base.mark_point().encode(x="city", y="y"),
    "scatter",
)

points = base.mark_point().encode(x="x", y="y").properties(width=120, height=120)
chart = looks(points.facet("city", columns=2), "superchart")
assert [part["title"] for part in chart["elements"]] == ["Bonn", "Oslo", "Rome"]
looks(points.encode(row="kind", column="city"), "superchart")
looks(points | (points & points.mark_line()), "superchart")
of = alt.X(alt.repeat("column"), type="quantitative")
looks(points.encode(x=of).repeat(column=["x", "y"]), "superchart")
left, right = (
    base.mark_bar().encode(x="city", y="sum(x)"),
    base.mark_line().encode(x="city", y="mean(y)"),
)
looks(alt.layer(left, right).resolve_scale(y="independent"), "superchart")

chart = looks(points.transform_filter(alt.datum.x > 5), "scatter")
assert len(chart["elements"][0]["points"]) == 13
looks(points + points.transform_regression("x", "y").mark_line(), "scatter")
looks(base.transform_density("x", as_=["x", "d"]).mark_area().encode(x="x:Q", y="d:Q"), "line")

# Expressions are not evaluated, and data is not fetched.
for made in (
    points.transform_calculate(z="datum.x * 2"),
    points.transform_filter("sqrt(datum.x) > 2"),
    alt.Chart("https://example.com/data.csv").mark_point().encode(x="x:Q"),
):
    assert shown(made) == (None, None)

"drawn"
