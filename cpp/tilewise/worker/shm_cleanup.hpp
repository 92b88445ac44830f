// The shared memory that MPI keeps under a name while ranks run: what has none needs no removal when they are killed.
#pragma once

namespace tilewise::worker {

/// Takes their names from MPICH's segments that this process has mapped, so that nothing is left when ranks are killed,
/// on whatever host. Every rank of the node must have left MPI_Init: it has mapped them by then. Open MPI's keep
/// theirs: it complains at the end, and its daemon removes them.
void take_names_from_segments();

/// Sweeps this user's segments that no process holds any more, as the front does on its own host (`launch/cleanup.py`
/// says how that is known): on a node that never has a front nobody else would. Does nothing where it cannot.
void sweep_segments();

}  // namespace tilewise::worker
