// Reading what people type: names with suggestions, sizes with suffixes, lists of numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

/// The candidate with the smallest edit distance, or "" when none is close.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// Text for an unknown word: `unknown algorithm 'rign'; did you mean 'ring'?`, or the whole list.
std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> candidates);

/// "8", "4K", "1.5M", "2GiB": binary multiples. Throws Error{invalid_argument}.
std::uint64_t parse_bytes(std::string_view text);
/// "8,4K,110278272".
std::vector<std::uint64_t> parse_bytes_list(std::string_view text);
/// "2,4,8" and "1..33,64": each value once, ascending, all >= 1.
std::vector<int> parse_ranks(std::string_view text);

std::vector<std::string_view> split(std::string_view text, char separator);

/// "64 KiB", "110.3 MB" are for people; `exact` powers of two use binary units, others decimal.
std::string human_bytes(std::uint64_t bytes);
/// "0.18 us", "4.10 ms", "1.2 s".
std::string human_ns(double nanoseconds);

}  // namespace sinew
