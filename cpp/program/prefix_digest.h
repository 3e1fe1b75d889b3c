#pragma once

// The chained digest of prefixes: 128 bits for every frontier of a prompt, equal for equal identities. It shortens lists
// of candidates and proves nothing: hits are compared. docs/formats/prefix_digest.md is its exact description:
//
//   d_0 = XXH3-128(header record)
//   d_f = XXH3-128(d_b, record of token b, ..., record of token f - 1)   b: the largest multiple of 64 below f
//
// All integers are little-endian; a digest is its low 8 bytes, then its high 8 bytes.
//   header record: u32 version (1), u64 salt bytes, salt, u64 mode bytes, mode, i64 rope delta
//   token record:  i32 id, i32 type, i32 position on axis 0, 1, 2
//                  and, only for a token of media: u64 digest low, u64 digest high, i64 offset in the media

#include <cstdint>
#include <span>

#include "cpp/program/digest_block.h"
#include "cpp/program/prompt_view.h"

namespace ninfer {

inline constexpr std::uint32_t kPrefixDigestVersion = 1;

// d_0.
Digest128 identity_digest(const IdentityHeader& header);

// The digests at these frontiers (ascending, 0 to the prompt's length), one pass over the tokens.
void prefix_digests(const PromptView& prompt, std::span<const std::int64_t> frontiers, std::span<Digest128> digests);

// d_0 to d_n: one more than there are tokens.
void all_prefix_digests(const PromptView& prompt, std::span<Digest128> digests);

}  // namespace ninfer
