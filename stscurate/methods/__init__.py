"""Methods: pure functions of arrays and tables that several stages need."""
