"""Modules that are changed when they are imported, and modules of ours that programs import."""

import sys
from importlib.machinery import ModuleSpec, PathFinder

# By module name: what changes the module when it has been loaded.
PATCHES = {}
# By module name: what makes the module.
MODULES = {}
# The same, for modules that take the place of a package that is not installed.
STAND_INS = {}


def install():
    """Has the modules that are loaded changed, and others when they are."""
    sys.meta_path.insert(0, Patcher())
    sys.meta_path.append(Maker(STAND_INS))
    for name, patch in PATCHES.items():
        if name in sys.modules:
            patch(sys.modules[name])


def find_spec(name, path=None, target=None):
    """Finds a module in the directories, and has it changed when it has been loaded."""
    spec = PathFinder.find_spec(name, path, target)
    if name in PATCHES and spec is not None and spec.loader is not None:
        spec.loader = PatchingLoader(spec.loader, PATCHES[name])
    return spec


class Patcher:
    """Finds the modules that need a patch, and those that are ours."""

    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            return Maker(MODULES).find_spec(name)
        return find_spec(name, path, target) if name in PATCHES else None


class PatchingLoader:
    """Loads a module as its own loader does, which the module has in the end."""

    def __init__(self, loader, patch):
        self.loader = loader
        self.patch = patch

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self.loader
        self.loader.exec_module(module)
        self.patch(module)


class Maker:
    """Finds modules that a function makes."""

    def __init__(self, modules):
        self.modules = modules

    def find_spec(self, name, path=None, target=None):
        if name not in self.modules:
            return None
        is_package = any(other.startswith(f"{name}.") for other in self.modules)
        return ModuleSpec(name, self, is_package=is_package)

    def create_module(self, spec):
        return self.modules[spec.name]()

    def exec_module(self, module):
        pass
