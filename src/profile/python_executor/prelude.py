"""What a fresh session of the executor holds: the helpers of OpenEnv's REPL, and its import
allowlist.
"""


def _isolet_install():
    # Taken from here and not from the namespace, in which guest code may give them other meanings.
    import builtins
    import json
    import sys
    import traceback
    from builtins import ImportError, any, dict, hasattr, isinstance, list, repr, sorted, str, type

    namespace = globals()
    function, module = type(_isolet_install), type(sys)

    def safe_json_dumps(obj):
        """JSON of `obj`, with the repr of whatever JSON does not know."""
        return json.dumps(obj, default=repr)

    def FINAL(value):
        """Marks `value` as the final answer, when it is printed or the cell's last expression."""
        return f"FINAL({value})"

    def FINAL_VAR(name):
        """Marks the variable called `name` as the final answer, as FINAL does."""
        name = str(name).strip().strip("\"'")
        value = namespace.get(name)
        return f"FINAL_VAR({name})" if value is None else FINAL(value)

    def SHOW_VARS():
        """The sorted names of the variables; modules, helpers and tools are none."""
        return sorted(name for name, value in namespace.items() if is_variable(name, value))

    helpers = {
        "format_exc": traceback.format_exc,
        "safe_json_dumps": safe_json_dumps,
        "FINAL": FINAL,
        "FINAL_VAR": FINAL_VAR,
        "SHOW_VARS": SHOW_VARS,
    }

    def is_variable(name, value):
        if type(name) is not str or name.startswith("_") or type(value) is module:
            return False
        return helpers.get(name) is not value and not is_host_function(value)

    def is_host_function(value):
        return type(value) is function and hasattr(value, "aio") and hasattr(value, "map")

    def final_answer():
        """The answer that the variables hold: the one that was named, or `answer` if it is ready.
        """
        name = namespace.pop("_isolet_argument", None)
        value = None if name is None else namespace.get(name)
        if value is not None:
            return str(value)
        answer = namespace.get("answer")
        if isinstance(answer, dict) and answer.get("ready", False):
            return str(answer.get("content", ""))
        return None

    def allow_imports(allowed):
        """Has imports that guest code itself makes refused, those of `allowed` aside."""
        unrestricted = builtins.__import__
        listed = ", ".join(allowed) if allowed else "none"
        allowed = (*allowed, "__future__")

        def __import__(name, globals=None, locals=None, fromlist=(), level=0):
            # An import that C code makes for itself, as datetime.strptime does, comes with a list.
            is_own = type(fromlist) is not list and sys._getframe(1).f_globals is namespace
            if is_own and not any(name == one or name.startswith(one + ".") for one in allowed):
                raise ImportError(
                    f"import of '{name}' is not allowed, allowed imports: {listed}", name=name
                )
            return unrestricted(name, globals, locals, fromlist, level)

        builtins.__import__ = __import__

    namespace.update(helpers, _isolet_final_answer=final_answer)
    allowed = namespace.pop("_isolet_argument", None)
    if allowed is not None:
        allow_imports(allowed)


_isolet_install()
del _isolet_install
