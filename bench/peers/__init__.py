"""The peers: what the benchmark runs beside tilewise."""
