"""Speed: fleets against a reference (`measure`, `reference`), how long a sweep takes (`cost`, without torch),
and both as tables and sentences (`report`)."""
