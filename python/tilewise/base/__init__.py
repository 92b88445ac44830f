"""The ground floor: errors, units, staged files, processes. Nothing here knows matrices or MPI."""
