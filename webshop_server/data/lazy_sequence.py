"""Sequences that make each element when it is read: a catalogue or split may have millions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class LazySequence(Sequence[T_co]):
    """An immutable sequence; subclasses define `__len__` and `_make`.

    Attributes:
        noun: what an error message calls one element.
    """

    noun = "element"

    @abstractmethod
    def _make(self, index: int) -> T_co:
        """Return the element at `index`, which is from 0 to the length less 1."""

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> list[T_co]: ...
    def __getitem__(self, index: int | slice) -> T_co | list[T_co]:
        """Return the element at an integer of any type, or the list of a slice."""
        if isinstance(index, slice):
            return [self._make(i) for i in range(*index.indices(len(self)))]
        try:
            number = range(len(self))[index]
        except IndexError as error:
            raise IndexError(f"no {self.noun} {index}; there are {len(self)}, from 0") from error
        return self._make(number)

    def __deepcopy__(self, memo: dict[int, Any]) -> LazySequence[T_co]:
        """Return the sequence itself, because it never changes."""
        return self


class Computed(LazySequence[T_co]):
    """A sequence of `length` elements, each made by a function of its index."""

    def __init__(self, length: int, make: Callable[[int], T_co]) -> None:
        self._length = length
        self._make_one = make

    def __len__(self) -> int:
        return self._length

    def _make(self, index: int) -> T_co:
        return self._make_one(index)
