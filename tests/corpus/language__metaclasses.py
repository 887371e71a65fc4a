"""Metaclasses: __prepare__, __new__, __call__, class-level operators, __class_getitem__, abstract registries."""


class OrderedMeta(type):
    """Records definition order and rejects duplicate method names."""

    class Namespace(dict):
        def __setitem__(self, key, value):
            if key in self and callable(value):
                raise TypeError(f"{key} defined twice")
            super().__setitem__(key, value)

    @classmethod
    def __prepare__(mcs, name, bases, **options):
        namespace = mcs.Namespace()
        namespace["injected"] = f"{name}:{sorted(options)}"
        return namespace

    def __new__(mcs, name, bases, namespace, **options):
        cls = super().__new__(mcs, name, bases, dict(namespace))
        cls.order = [key for key in namespace if not key.startswith("__") and key != "injected"]
        cls.options = options
        return cls

    def __init__(cls, name, bases, namespace, **options):
        super().__init__(name, bases, namespace)

    def __len__(cls):
        return len(cls.order)

    def __iter__(cls):
        return iter(cls.order)

    def __contains__(cls, item):
        return item in cls.order

    def __repr__(cls):
        return f"<ordered {cls.__name__}>"


class Form(metaclass=OrderedMeta, strict=True, lang="en"):
    name = "text"
    age = "number"

    def submit(self):
        return "sent"


print(Form, list(Form), len(Form), "age" in Form, "zip" in Form)
print(Form.injected, sorted(Form.options.items()))
try:
    class Broken(metaclass=OrderedMeta):
        def go(self): ...

        def go(self): ...  # noqa: F811
except TypeError as error:
    print("TypeError:", error)


class Singleton(type):
    """__call__ on the metaclass decides what calling the class does."""

    instances = {}

    def __call__(cls, *args, **kwargs):
        if cls not in Singleton.instances:
            Singleton.instances[cls] = super().__call__(*args, **kwargs)
        return Singleton.instances[cls]


class Config(metaclass=Singleton):
    def __init__(self, value):
        self.value = value


first, second = Config(1), Config(2)
print("singleton:", first is second, second.value, [c.__name__ for c in Singleton.instances])


class Plugin(type):
    table = {}

    def __init__(cls, name, bases, namespace):
        super().__init__(name, bases, namespace)
        if bases:
            Plugin.table[namespace.get("key", name.lower())] = cls


class Command(metaclass=Plugin):
    def run(self, *args):
        raise NotImplementedError


class Add(Command):
    def run(self, *args):
        return sum(args)


class Join(Command):
    key = "concat"

    def run(self, *args):
        return "-".join(map(str, args))


print({key: cls().run(1, 2, 3) for key, cls in sorted(Plugin.table.items())})


class Both(Singleton, Plugin):
    """A metaclass that combines two, which lets a class have both parents' behaviour."""


class Shared(Command, metaclass=Both):
    def run(self, *args):
        return len(args)


print("combined:", type(Shared).__name__, Shared() is Shared(), "shared" in Plugin.table)
try:
    class Conflict(Config, Add):
        pass
except TypeError as error:
    print("metaclass conflict:", "metaclass conflict" in str(error))


class Vector:
    """__class_getitem__ gives classes a subscript without a metaclass."""

    cache = {}

    def __class_getitem__(cls, size):
        if size not in cls.cache:
            cls.cache[size] = type(f"Vector{size}", (cls,), {"size": size})
        return cls.cache[size]

    def __init__(self, *values):
        if len(values) != self.size:
            raise ValueError(f"{type(self).__name__} needs {self.size} values, got {len(values)}")
        self.values = values


print(Vector[3] is Vector[3], Vector[2].__name__, Vector[3](1, 2, 3).values)
try:
    Vector[2](1, 2, 3)
except ValueError as error:
    print("ValueError:", error)


class Instance(type):
    def __instancecheck__(cls, instance):
        return hasattr(instance, "quack")

    def __subclasscheck__(cls, other):
        return "quack" in vars(other)


class Duck(metaclass=Instance):
    pass


Robot = type("Robot", (), {"quack": lambda self: "beep"})
print("virtual:", isinstance(Robot(), Duck), isinstance(3, Duck), issubclass(Robot, Duck), issubclass(int, Duck))
print("type of types:", type(Form).__name__, type(type(Form)).__name__, type(type) is type)
