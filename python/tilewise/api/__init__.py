"""tilewise from Python: commands as functions of paths and arrays, records, and studies as data frames."""
