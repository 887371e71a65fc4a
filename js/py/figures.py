"""Figures of matplotlib and plotly: `plt.show()` displays them, and so does a cell's end."""

import io
import os
import sys
import types

import _isolet_charts as charts
import _isolet_displays as displays

BACKEND = "isolet_display"  # what matplotlib imports
DATA = "application/vnd.isolet.chart.v1+json"
MOST_PICTURES = 100  # of one call, as the host takes by default


def install(patches, modules):
    """Prepares both libraries for when they are imported."""
    patches["matplotlib"] = patch_matplotlib
    patches["plotly.basedatatypes"] = patch_plotly
    modules[BACKEND] = make_backend
    displays.SPECIAL["matplotlib.figure"] = figure_formats
    displays.SPECIAL["plotly.basedatatypes"] = plotly_formats


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
    import json

    return {
        "application/vnd.plotly.v1+json": json.loads(figure.to_json()),
        "text/html": figure.to_html(full_html=False, include_plotlyjs="cdn"),
    }
