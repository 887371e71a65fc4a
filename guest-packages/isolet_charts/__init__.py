"""Charts of plotly and altair: what they say, as isolet's chart data, and pictures of them, which
matplotlib draws. isolet's display of such a chart uses it, if a session has it.
"""
