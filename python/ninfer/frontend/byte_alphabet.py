"""The printable alphabet in which byte-level BPE vocabularies spell bytes.

Bytes that print well in Latin-1 stand for themselves; the other 68 are moved, in order, to U+0100 and up, so that a
space is written U+0120 ("Ġ") and a newline U+010A ("Ċ").
"""

from __future__ import annotations


def _bytes_by_character() -> dict[str, int]:
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    moved = [value for value in range(256) if value not in printable]
    return {chr(value): value for value in printable} | {chr(0x100 + i): value for i, value in enumerate(moved)}


BYTE_OF_CHARACTER = _bytes_by_character()


def spelled_bytes(spelling: str) -> bytes:
    """The bytes that a vocabulary entry stands for; an entry with a letter outside the alphabet is plain text."""
    values = [BYTE_OF_CHARACTER.get(character) for character in spelling]
    if None in values:
        return spelling.encode()
    return bytes(value for value in values if value is not None)
