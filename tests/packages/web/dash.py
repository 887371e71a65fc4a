"""Makes the layout of a page."""

from dash import Dash, html

app = Dash()
app.layout = html.Div([html.H1("Hi")])
assert app.server.test_client().get("/_dash-layout").json["props"]["children"][0]["type"] == "H1"
