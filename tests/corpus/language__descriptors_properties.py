"""Descriptors: data and non-data lookup order, properties, __set_name__, validators, lazy values."""

log = []


class Validated:
    """A data descriptor that checks every assignment."""

    def __set_name__(self, owner, name):
        self.name = name
        self.slot = "_" + name
        log.append(f"{owner.__name__}.{name}")

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.slot)

    def __set__(self, instance, value):
        setattr(instance, self.slot, self.check(value))

    def __delete__(self, instance):
        log.append(f"deleted {self.name}")
        delattr(instance, self.slot)

    def check(self, value):
        raise NotImplementedError


class Number(Validated):
    def __init__(self, low=None, high=None):
        self.low, self.high = low, high

    def check(self, value):
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise TypeError(f"{self.name}: {value!r} is not a number")
        if self.low is not None and value < self.low:
            raise ValueError(f"{self.name}: {value} < {self.low}")
        if self.high is not None and value > self.high:
            raise ValueError(f"{self.name}: {value} > {self.high}")
        return value


class OneOf(Validated):
    def __init__(self, *options):
        self.options = options

    def check(self, value):
        if value not in self.options:
            raise ValueError(f"{self.name}: {value!r} not in {list(self.options)}")
        return value


class Part:
    weight = Number(low=0)
    quality = Number(0, 10)
    colour = OneOf("red", "green")

    def __init__(self, weight, quality, colour):
        self.weight, self.quality, self.colour = weight, quality, colour


part = Part(1.5, 7, "red")
print("names set:", log)
print(part.weight, part.quality, part.colour, sorted(vars(part)))
for name, value in [("weight", -1), ("quality", 11), ("colour", "blue"), ("weight", "heavy"), ("quality", True)]:
    try:
        setattr(part, name, value)
    except (TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}")
print("unchanged:", part.weight, part.quality, part.colour)
del part.colour
print("after del:", log[-1], hasattr(part, "colour"))
print("through the class:", isinstance(Part.weight, Number), Part.weight.low)


class lazy:
    """A non-data descriptor: the instance dict shadows it after the first use."""

    def __init__(self, function):
        self.function = function
        self.name = function.__name__

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.function(instance)
        return value


class Circle:
    computed = 0

    def __init__(self, radius):
        self._radius = radius

    @property
    def radius(self):
        """The radius, never negative."""
        return self._radius

    @radius.setter
    def radius(self, value):
        if value < 0:
            raise ValueError("negative radius")
        self._radius = value
        self.__dict__.pop("area", None)

    @radius.deleter
    def radius(self):
        self._radius = 0

    @property
    def diameter(self):
        return self._radius * 2

    @lazy
    def area(self):
        Circle.computed += 1
        return 3 * self._radius**2


circle = Circle(2)
print("lazy:", circle.area, circle.area, "computed", Circle.computed, sorted(vars(circle)))
circle.radius = 5
print("invalidated:", circle.area, "computed", Circle.computed, circle.diameter)
for action in (lambda: setattr(circle, "radius", -1), lambda: setattr(circle, "diameter", 3)):
    try:
        action()
    except (ValueError, AttributeError) as error:
        print("refused:", type(error).__name__)
del circle.radius
print("after delete:", circle.radius, "| doc:", Circle.radius.__doc__)
print("property parts:", Circle.diameter.fset is None, Circle.radius.fget.__name__)


class Fallback:
    """__getattribute__ comes first, __getattr__ only when the lookup failed."""

    present = "class value"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return f"made up {name}"

    def __setattr__(self, name, value):
        object.__setattr__(self, name.lower(), value)

    def __dir__(self):
        return ["b", "a"]


fallback = Fallback()
fallback.LOUD = "quiet"
print(fallback.present, "|", fallback.absent, "|", fallback.loud, "|", dir(fallback))
print(getattr(fallback, "_hidden", "default"), hasattr(fallback, "_x"), hasattr(fallback, "x"))
bound = fallback.__getattr__
print("functions are descriptors:", bound("z"), Fallback.__getattr__.__get__(fallback)("y"))
