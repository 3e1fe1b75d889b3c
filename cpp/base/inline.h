#pragma once

// Small functions that the per-instruction-set objects share with baseline code must never be emitted out of line: the
// linker keeps one copy of a weak symbol, and it could keep the one compiled for a newer CPU (tests/tidy checks that
// those objects export no weak symbol outside their own namespace).
#define NINFER_INLINE [[gnu::always_inline]] inline
