"""typing at run time: hints, generics, TypedDict, NamedTuple, Protocol, Literal, Annotated, overload, introspection."""
import collections.abc
import typing
from typing import (Annotated, Any, Callable, ClassVar, Final, Generic, Literal, NamedTuple, NewType, NotRequired, Optional,
                    ParamSpec, Protocol, Required, Self, TypedDict, TypeVar, Union, cast, get_args, get_origin,
                    get_type_hints, overload, runtime_checkable)

T = TypeVar("T")
K = TypeVar("K", bound=str)
N = TypeVar("N", int, float)
P = ParamSpec("P")
print(T.__name__, K.__bound__ is str, [c.__name__ for c in N.__constraints__], P.__name__)


class Stack(Generic[T]):
    def __init__(self, *items: T) -> None:
        self.items = list(items)

    def push(self, item: T) -> Self:
        self.items.append(item)
        return self

    def pop(self) -> T:
        return self.items.pop()


class Named(Stack[K]):
    label: ClassVar[str] = "named"


print(Stack[int](1, 2).push(3).pop(), get_origin(Stack[int]) is Stack, get_args(Stack[int]), [get_args(b) == (K,) for b in Named.__orig_bases__], Stack.__parameters__ == (T,), Stack[list[T]].__parameters__ == (T,))
try:
    Stack[int, str]
except TypeError as error:
    print("too many parameters:", type(error).__name__)


class Movie(TypedDict):
    title: Required[str]
    year: NotRequired[int]
    cast: list[str]


class Rated(Movie, total=False):
    stars: float


film: Rated = {"title": "Metropolis", "cast": []}
print(type(film).__name__, sorted(Rated.__required_keys__), sorted(Rated.__optional_keys__), list(get_type_hints(Rated)), Movie(title="M", cast=["x"]), Rated.__total__)


class Employee(NamedTuple):
    """A typed named tuple with a default and a method."""

    name: str
    salary: int = 100

    def raised(self, by: int) -> "Employee":
        return self._replace(salary=self.salary + by)


print(Employee("ann").raised(5), Employee._field_defaults, get_type_hints(Employee)["salary"] is int, Employee.__doc__, isinstance(Employee("x"), tuple))


@runtime_checkable
class HasArea(Protocol):
    def area(self) -> float: ...


class Tile:
    side: Final = 2

    def area(self) -> float:
        return self.side**2


print(isinstance(Tile(), HasArea), isinstance("x", HasArea), issubclass(Tile, HasArea))
try:
    HasArea()
except TypeError as error:
    print("a protocol has no instances:", type(error).__name__)


def process(a: int, b: "list[Tile]", c: Optional[str] = None, *rest: float, key: Literal["x", "y"] = "x", **more: Any) -> dict[str, Callable[[int], bool]]:
    return {}


hints = get_type_hints(process)
print(list(hints), hints["a"] is int, get_args(hints["b"])[0] is Tile, set(get_args(hints["c"])) == {str, type(None)}, get_args(hints["key"]))
returned = get_args(hints["return"])
print(get_origin(hints["return"]).__name__, returned[0].__name__, get_origin(returned[1]) is collections.abc.Callable, get_args(returned[1]), hints["more"] is Any)
print(get_origin(Annotated[int, "unit", 5]) is Annotated, get_args(Annotated[int, "unit", 5]), Annotated[int, "m"].__metadata__)


class Measured:
    length: Annotated[float, "metres"]
    parent: "Measured | None"


print(get_args(get_type_hints(Measured, include_extras=True)["length"])[1], get_type_hints(Measured)["length"] is float, set(get_args(get_type_hints(Measured)["parent"])) == {Measured, type(None)})
print(Union[int, str] == Union[str, int], Union[int] is int, Union[int, Union[str, int]] == Union[int, str], Optional[int] == Union[int, None], int | str == Union[int, str], isinstance(3, int | str), isinstance(None, int | None), issubclass(bool, int | str))
print(Literal["a", "b"] == Literal["b", "a"], Literal[1] == Literal[True], get_args(Literal["a", Literal["b"]]), list[int] == list[int], list[int] is list, tuple[int, ...].__args__[1] is ...)
print(list[int]((1, 2)), dict[str, int](a=1), list[T][int] == list[int], dict[K, T][str, int] == dict[str, int], type(list[int]).__name__, get_origin(typing.List[int]) is list)
for bad in (lambda: isinstance([], list[int]), lambda: Optional[1, 2], lambda: Generic[int], lambda: ClassVar[int, str]):
    try:
        bad()
        print("accepted", end=" ")
    except TypeError as error:
        print(type(error).__name__, end=" ")
print()

UserId = NewType("UserId", int)
print(UserId(5) + 1, UserId.__name__, UserId.__supertype__ is int, cast("str", 3), typing.TYPE_CHECKING)


@overload
def twice(value: int) -> int: ...
@overload
def twice(value: str) -> str: ...
def twice(value):
    return value * 2


print(twice(4), twice("ab"), len(typing.get_overloads(twice)), typing.assert_type(3, int))


def validate(value: Any, hint: Any) -> bool:
    """A small structural validator over hints, as a script might write one."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Annotated:
        return validate(value, args[0]) and all(check(value) for check in args[1:])
    if origin is Union or type(hint).__name__ in ("UnionType", "Union"):
        return any(validate(value, a) for a in args)
    if origin is Literal:
        return value in args
    if origin in (list, set, frozenset):
        return isinstance(value, origin) and all(validate(v, args[0]) for v in value)
    if origin is tuple:
        if len(args) == 2 and args[1] is ...:
            return isinstance(value, tuple) and all(validate(v, args[0]) for v in value)
        return isinstance(value, tuple) and len(value) == len(args) and all(map(validate, value, args))
    if origin is dict:
        return isinstance(value, dict) and all(validate(k, args[0]) and validate(v, args[1]) for k, v in value.items())
    if typing.is_typeddict(hint):
        inner = get_type_hints(hint)
        return isinstance(value, dict) and hint.__required_keys__ <= value.keys() <= inner.keys() and all(validate(v, inner[k]) for k, v in value.items())
    return isinstance(value, hint)


Positive = Annotated[int, lambda n: n > 0]
cases = [
    (3, int), ("3", int), ([1, 2], list[int]), ([1, "2"], list[int]), ((1, "a"), tuple[int, str]), ((1, 2, 3), tuple[int, ...]),
    ({"a": [1.5, None]}, dict[str, list[float | None]]), ({"a": 1}, dict[str, str]), (5, Positive), (-5, Positive), ("x", Literal["x", 1]),
    ({"title": "t", "cast": []}, Movie), ({"title": "t"}, Movie), ({"title": "t", "cast": [1]}, Movie), (None, Optional[int]), (object(), Any),
]
print([validate(v, h) for v, h in cases])
