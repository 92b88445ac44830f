// A place where the phase of this process stands, for who can look into its memory.
#pragma once

namespace tilewise {

/// From now on the first letter of the phase that a ledger enters or goes back to is kept at `place`, which must live
/// as long as this process. The front looks there when a rank is stopped and can say nothing.
void show_phase_at(char* place);

}  // namespace tilewise
