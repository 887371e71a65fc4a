"""Jupyter's own tests of kernels."""

from __future__ import annotations

import jupyter_kernel_test


class TestKernel(jupyter_kernel_test.KernelTests):
    kernel_name = "isolet"
    language_name = "python"
    file_extension = ".py"

    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = (
        {"text": "zi", "matches": {"zip"}},
        {"text": "x = st", "matches": {"staticmethod", "str"}},
        {"text": "import statis", "matches": {"statistics"}},
        {"text": "%timei", "matches": {"%timeit"}},
        {"text": "%%bas", "matches": {"%%bash"}},
        {"text": "nothing_begins_so", "matches": set()},
        {"text": "f().", "matches": set()},
    )
    complete_code_samples = (
        "1",
        "print('hello, world')",
        "def f(x):\n  return x*2\n\n\n",
        "%time 1",
        "await f()",
        "%%bash\nls\n\n",
    )
    incomplete_code_samples = ("print('''hello", "def f(x):\n  x*2", "x = [1,", "%%bash\nls")
    invalid_code_samples = ("import = 7q", "x = )")
    code_generate_error = "raise ValueError('no')"
    code_execute_result = (
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    )
    code_display_data = (
        {
            "code": "from IPython.display import HTML, display; display(HTML('<b>test</b>'))",
            "mime": "text/html",
        },
        {
            "code": "from IPython.display import Math, display; display(Math('x'))",
            "mime": "text/latex",
        },
        {"code": "display({'image/png': b'1'}, raw=True)", "mime": "image/png"},
    )
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"
