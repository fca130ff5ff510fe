"""How fast it is: fleets beside a reference (`measure`, `reference`), what a sweep will take (`cost`, by the FLOP of
`flop`), and both as tables and sentences (`report`). Importing `cost` imports no torch."""
