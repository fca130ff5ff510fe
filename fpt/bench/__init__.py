"""How fast it is: fleets beside a reference (`measure`, `reference`), what a sweep will take (`cost`, without torch),
and both as tables and sentences (`report`)."""
