"""What chart data has at most, as `js/py/charts.py` has it of figures of matplotlib."""

MOST_POINTS = 10_000  # of one series; the first ones are given
MOST_AXES = 64
