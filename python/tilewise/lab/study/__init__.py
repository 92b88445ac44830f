"""Studies: sweeps of jobs described in TOML, run point by point, kept as lines of JSON, shown as tables."""
