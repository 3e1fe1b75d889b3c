#pragma once

// What a transition of a program's resources publishes in the end, if anything.

#include <variant>

#include "cpp/program/admission_candidate.h"
#include "cpp/program/capture_request.h"
#include "cpp/program/sequence.h"
#include "cpp/program/sequence_request.h"

namespace ninfer {

// Only what the target does to inactive owners.
struct NoPublication {};

// A new active sequence.
struct AdmissionPublication {
    AdmissionCandidate candidate;
    SequenceRequest request;
};

// A checkpoint of an active sequence, if that is still where it was when the plan was sealed; else nothing (Skip),
// and the result says why.
struct CapturePublication {
    SequenceHandle sequence;
    CaptureRequest request;
};

// A sequence that has ended becomes a checkpoint.
struct FinishPublication {
    SequenceHandle sequence;
    FinishRequest request;
};

using Publication = std::variant<NoPublication, AdmissionPublication, CapturePublication, FinishPublication>;

}  // namespace ninfer
