"""What every floor stands on: errors, units, staged files, processes. Nothing here knows matrices or MPI."""
