"""Which cell is the latest of a session. A key finds a continuation and proves nothing."""

from __future__ import annotations

from dataclasses import dataclass

from ninfer.resources.reuse_key import ReuseKey

SessionName = tuple[str, str]
"""Salt and session."""


def session_name(key: ReuseKey) -> SessionName | None:
    return None if key.session is None else (key.salt, key.session)


@dataclass(frozen=True)
class Binding:
    cell: int
    order: int


class SessionIndex:
    """At most one cell per session and one session per cell; so there are never more bindings than cells."""

    def __init__(self) -> None:
        self._binding_of: dict[SessionName, Binding] = {}
        self._name_of: dict[int, SessionName] = {}

    def __len__(self) -> int:
        return len(self._binding_of)

    def cell_of(self, name: SessionName | None) -> int | None:
        binding = None if name is None else self._binding_of.get(name)
        return None if binding is None else binding.cell

    def name_of(self, cell: int) -> SessionName | None:
        return self._name_of.get(cell)

    def is_newer(self, name: SessionName, order: int) -> bool:
        """Whether a request of this order may take the binding (C3)."""
        binding = self._binding_of.get(name)
        return binding is None or order > binding.order

    def bind(self, name: SessionName, cell: int, order: int) -> int | None:
        """The cell that held the binding before, if it was another one: it is superseded now."""
        assert self.is_newer(name, order), (name, order)
        assert self._name_of.get(cell, name) == name, (cell, name)
        former = self.cell_of(name)
        if former is not None:
            del self._name_of[former]
        self._binding_of[name] = Binding(cell, order)
        self._name_of[cell] = name
        return None if former == cell else former

    def unbind(self, cell: int) -> None:
        """Nothing if the cell has no binding."""
        name = self._name_of.pop(cell, None)
        if name is not None:
            del self._binding_of[name]
