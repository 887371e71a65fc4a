"""Renders a template with inheritance and escaping."""

import jinja2

files = {"base": "<{% block x %}{% endblock %}>"}
files["page"] = "{% extends 'base' %}{% block x %}{{ names|join(', ') }}{% endblock %}"
environment = jinja2.Environment(loader=jinja2.DictLoader(files), autoescape=True)
assert environment.get_template("page").render(names=["a", "<b>"]) == "<a, &lt;b&gt;>"
