"""One module per rule. Each offers `check(tree) -> list[Finding]` and reads nothing but the tree it is given."""
