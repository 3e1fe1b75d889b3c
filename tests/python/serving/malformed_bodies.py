"""Bodies that no endpoint may accept, by name."""

from __future__ import annotations

MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"model=demo&prompt=hello",
    "a cut object": b'{"model": "demo"',
    "an array": b"[]",
    "a string": b'"hello"',
    "null": b"null",
    "NaN": b'{"temperature": NaN}',
    "Infinity": b'{"temperature": -Infinity}',
    "beyond a double": b'{"temperature": 1e999}',
    "5,000 digits": b'{"seed": ' + b"9" * 5000 + b"}",
    "lone surrogate": b'{"model": "\\ud800"}',
    "raw NUL": b'{"model": "a\0b"}',
    "invalid UTF-8": b'{"model": "\xff\xfe"}',
    "UTF-8 surrogate": b'{"model": "\xed\xa0\x80"}',
    "UTF-16": '{"model": "demo"}'.encode("utf-16"),
    "byte order mark": b"\xef\xbb\xbf{}",
    "100,000 arrays": b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "100,000 objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
}
