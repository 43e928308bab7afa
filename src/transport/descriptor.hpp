// What operations are called, in error messages and in descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sinew/transport.hpp>

namespace sinew {

/// Instead of a count, where parts differ in size. The other bits: a hash of the counts where all
/// ranks know them, or else how many bits CallOptions::likely_bytes has.
inline constexpr std::uint64_t kUneven = std::uint64_t{1} << 63;
/// Text of an operation for error messages: "allreduce of 1000 f32 sum by ring".
std::string describe(const OpDescriptor& descriptor);
/// The tag of the collective by which ranks tell each other what they measured in a trial. The rest
/// of its descriptor is that of the calls that were tried, because those are what users know.
inline constexpr std::uint64_t kTrialTag = 0x7472'6961'6c20'656e;
/// Hash by which an algorithm's name travels in descriptors.
std::uint64_t algorithm_key(std::string_view name) noexcept;
/// Of all that ranks compare but the tag, which fingerprints mix in by themselves.
std::uint64_t hash_of(const OpDescriptor& descriptor) noexcept;

}  // namespace sinew
