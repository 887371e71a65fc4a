# Puts a variable that is too large for source code where DSPy's code looks for it.
def _dspy_inject(name, value):
    import os

    os.makedirs("/tmp/dspy_vars", exist_ok=True)
    with open(f"/tmp/dspy_vars/{name}.json", "w", encoding="utf-8") as file:
        file.write(value)


_dspy_inject(_dspy_name, _dspy_value)
del _dspy_inject, _dspy_name, _dspy_value
