"""What stands for something of this process: sandboxes, sessions, servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Self


class Handle:
    """A base class. Copies are the object itself: frameworks copy what they are configured with."""

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a `{type(self).__name__}` cannot be pickled, because it belongs to process "
            f"{os.getpid()}; make another one where it is needed"
        )
