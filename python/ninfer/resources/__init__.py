"""What is kept and for whom: the catalog of inactive context. Policy only; every physical fact stays in the program."""
