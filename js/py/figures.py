"""Figures of matplotlib, plotly and altair, displayed by `show()` and at a cell's end."""

import contextlib
import functools
import importlib
import io
import json
import os
import sys
import types

import _isolet_charts as charts
import _isolet_displays as displays
import _isolet_packages as packages

BACKEND = "isolet_display"  # what matplotlib imports
DATA = "application/vnd.isolet.chart.v1+json"
VEGA = {  # altair's modules, and the formats of their charts
    "altair.vegalite.v6.api": "application/vnd.vegalite.v6+json",
    "altair.vegalite.v5.api": "application/vnd.vegalite.v5+json",
}
READERS = "isolet_charts"  # the package that reads charts of plotly and altair
MOST_PICTURES = 100  # of one call, as the host takes by default

has_pictures = False  # whether the run wants those of charts that a browser would draw


def install(patches, modules):
    """Prepares the libraries for when they are imported."""
    patches["matplotlib"] = patch_matplotlib
    patches["plotly.basedatatypes"] = patch_plotly
    modules[BACKEND] = make_backend
    displays.SPECIAL["matplotlib.figure"] = figure_formats
    displays.SPECIAL["plotly.basedatatypes"] = plotly_formats
    for name in VEGA:
        displays.SPECIAL[name] = functools.partial(vega_formats, name)


def patch_matplotlib(module):
    """Makes our backend the default. Pyodide's own needs a page."""
    if os.environ.get("MPLBACKEND"):
        return
    for settings in (module.rcParams, module.rcParamsOrig, module.rcParamsDefault):
        settings["backend"] = f"module://{BACKEND}"


def start():
    """Follows the session's environment where matplotlib is imported already."""
    backend = os.environ.get("MPLBACKEND")
    if backend and "matplotlib" in sys.modules:
        sys.modules["matplotlib"].use(backend)


def make_backend():
    """The module that matplotlib takes as its backend: Agg, whose figures are shown as pictures."""
    from matplotlib.backend_bases import FigureManagerBase
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    class FigureManager(FigureManagerBase):
        def show(self):
            show_figure(self.canvas.figure)

        @classmethod
        def pyplot_show(cls, *, block=None):
            show_open_figures()

    class FigureCanvas(FigureCanvasAgg):
        manager_class = FigureManager

    module = types.ModuleType(BACKEND, "Shows figures of matplotlib by displaying pictures.")
    for kind in (FigureManager, FigureCanvas):
        kind.__module__ = BACKEND
        setattr(module, kind.__name__, kind)
    return module


def end_of_cell(value):
    """Displays the figures that a cell has left open, after its value if that is given."""
    displays.attempt(show_open_figures, value)


def show_open_figures(value=None):
    """Displays and closes the figures that pyplot has open, if the backend is ours. The value that
    is given was there before them.
    """
    import matplotlib
    from matplotlib._pylab_helpers import Gcf

    if matplotlib.get_backend() != f"module://{BACKEND}":
        return
    try:
        figures = [manager.canvas.figure for manager in Gcf.get_all_fig_managers()]
        figures = [figure for figure in figures if figure.axes or figure.get_children()[1:]]
        if figures and value is not None:
            displays.send({displays.PLAIN: displays.plain_text(value, {})}, is_result=True)
        for figure in figures[:MOST_PICTURES]:
            show_figure(figure)
    finally:
        Gcf.destroy_all()


def show_figure(figure):
    formats = formats_of_figure(figure)
    displays.send(formats | {displays.PLAIN: displays.plain_text(figure, formats)})


def figure_formats(value):
    kind = sys.modules["matplotlib.figure"].Figure
    return (lambda: formats_of_figure(value)) if issubclass(type(value), kind) else None


def formats_of_figure(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = io.BytesIO()
    canvas = figure.canvas
    if not isinstance(canvas, FigureCanvasAgg):
        canvas = FigureCanvasAgg(figure)
    canvas.print_figure(picture, format="png", dpi=figure.dpi, bbox_inches="tight")
    formats = {"image/png": picture.getvalue()}
    chart = displays.attempt(charts.describe, figure)
    if chart is not None:
        formats[DATA] = chart
    return formats


def patch_plotly(module):
    """`figure.show()` would open a browser."""

    def show(self, *args, **kwargs):
        """Display the figure."""
        displays.display(self)

    module.BaseFigure.show = show


def plotly_formats(value):
    kind = sys.modules["plotly.basedatatypes"].BaseFigure
    return (lambda: formats_of_plotly(value)) if issubclass(type(value), kind) else None


def formats_of_plotly(figure):
    data = json.loads(figure.to_json())
    return {
        "application/vnd.plotly.v1+json": data,
        "text/html": figure.to_html(full_html=False, include_plotlyjs="cdn"),
        **formats_of_chart("plotly", data),
    }


def vega_formats(module, value):
    kind = getattr(sys.modules[module], "TopLevelMixin", None)
    if not isinstance(kind, type) or not issubclass(type(value), kind):
        return None
    return lambda: formats_of_vega(VEGA[module], value)


def formats_of_vega(name, chart):
    """What altair displays, its data, and what the data says."""
    spec = chart.to_dict()
    found = displays.attempt(chart._repr_mimebundle_)
    found = found[0] if isinstance(found, tuple) and found else found
    found = found if isinstance(found, dict) else {}
    return {name: spec, **formats_of_chart("vega", spec), **found}


def formats_of_chart(kind, data):
    """The chart data, and a picture if the run wants those, as far as the package can read it."""
    formats = {}
    if READERS not in sys.modules:
        packages.load(READERS)
    with contextlib.suppress(Exception):
        reader = importlib.import_module(f"{READERS}.{kind}")
        if (chart := reader.describe(data)) is not None:
            formats[DATA] = chart
        if has_pictures and (picture := reader.draw(data)) is not None:
            formats["image/png"] = picture
    return formats
