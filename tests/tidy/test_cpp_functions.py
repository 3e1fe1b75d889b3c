"""The C++ reader of the size limits sees the functions that are there."""

from __future__ import annotations

import pytest

from tests.tidy.cpp_functions import CppFunction, cpp_functions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int f() { return 1; }\n", [CppFunction("f", 1, 1, 0)]),
        (
            "namespace n {\nclass C : public B<int> {\n public:\n  int g(int a, int b = h(1, 2)) const {\n  }\n};\n}\n",
            [CppFunction("g", 4, 2, 2)],
        ),
        (
            "template <class T, int N = (3 > 2)>\nvoid f(std::map<T, int> m) noexcept {\n  if (m) {\n  }\n}\n",
            [CppFunction("f", 1, 5, 1)],
        ),
        ("bool C::operator()(int a, int b) const {\n}\n", [CppFunction("operator()", 1, 2, 2)]),
        ("C& operator==(C a) {\n}\n", [CppFunction("operator==", 1, 2, 1)]),
        (
            "auto s = R\"x(void f() { }{ )x\"; // void f() {\nchar c = '{'; int n = 1'000;\n/* { */ int f(void) {\n}\n",
            [CppFunction("f", 3, 2, 0)],
        ),
        ("#define M(x) \\\n  { x; }\nstruct S { int a; };\nenum class E : int { kA };\nint t[] = {1, 2};\n", []),
        (
            "[[nodiscard]] auto f(int a) -> int {\n  g([&](int b) { return b; });\n  return 1;\n}\n",
            [CppFunction("f", 1, 4, 1)],
        ),
        (
            "struct S {\n  explicit S(int a, int b) : a_(a), b_(b) {\n  }\n  ~S() { }\n};\n",
            [CppFunction("S", 2, 2, 2), CppFunction("~S", 4, 1, 0)],
        ),
    ],
)
def test_functions_are_found(text: str, expected: list[CppFunction]) -> None:
    assert cpp_functions(text) == expected
