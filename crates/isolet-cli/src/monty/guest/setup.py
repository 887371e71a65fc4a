# Makes the modules of the guest's half, and takes away what made them.
def _monty_setup(modules, policy):
    import sys
    import types

    for name, source in modules:
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(source, f"<isolet>/{name}", "exec", dont_inherit=True), vars(module))
    sys.modules["_monty_files"].install()
    sys.modules["_monty_session"].install(policy)


try:
    _monty_setup(_monty_modules, _monty_policy)
finally:
    del _monty_setup, _monty_modules, _monty_policy
