"""Makes a chart as a page of HTML."""

from bokeh.embed import file_html
from bokeh.plotting import figure
from bokeh.resources import CDN

plot = figure(title="Squares")
plot.line([1, 2, 3], [1, 4, 9])
assert "Squares" in file_html(plot, CDN)
