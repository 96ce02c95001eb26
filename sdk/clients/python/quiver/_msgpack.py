"""Reads the few kinds of MessagePack that a reply in the store is made of."""
from __future__ import annotations

import struct
from typing import Any


def unpack(data: bytes) -> Any:
    value, end = _read(data, 0)
    if end != len(data):
        raise ValueError("bytes after the value")
    return value


_INTEGERS = {0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q", 0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q", 0xCB: ">d", 0xCA: ">f"}
_STRINGS = {0xD9: ">B", 0xDA: ">H", 0xDB: ">I", 0xC4: ">B", 0xC5: ">H", 0xC6: ">I"}


def _read(data: bytes, at: int) -> "tuple[Any, int]":
    kind = data[at]
    at += 1
    if kind < 0x80:
        return kind, at
    if kind >= 0xE0:
        return kind - 256, at
    if 0x90 <= kind < 0xA0 or kind == 0xDC:
        count = kind & 15
        if kind == 0xDC:
            (count,), at = struct.unpack_from(">H", data, at), at + 2
        values = []
        for _ in range(count):
            value, at = _read(data, at)
            values.append(value)
        return values, at
    if 0xA0 <= kind < 0xC0 or kind in _STRINGS:
        size = kind & 31
        if kind in _STRINGS:
            form = _STRINGS[kind]
            (size,), at = struct.unpack_from(form, data, at), at + struct.calcsize(form)
        if at + size > len(data):
            raise ValueError("a string is longer than what there is")
        return data[at:at + size], at + size
    if kind in _INTEGERS:
        form = _INTEGERS[kind]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    if kind in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[kind], at
    raise ValueError(f"an unexpected kind 0x{kind:02x}")
