// Spelled words and short commands spoken by espeak-ng, as a folder that open_speech() reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace sinew {

/// Sees to it that `folder` has so many utterances; those that are there already are kept. Which
/// they are, and with which voice and speed, is a function of seed, part and number. Several
/// processes may ask at once: one works, the others wait for it. `say` is told of what will take a
/// while. Throws Error{system} that names the package where espeak-ng is missing.
void make_speech(const std::filesystem::path& folder, std::size_t train, std::size_t test,
                 std::uint64_t seed, const std::function<void(std::string_view)>& say);

/// What is said in an utterance of `part`: letters with spaces between them, or words.
std::string spoken_text(std::string_view part, std::size_t number, std::uint64_t seed);

}  // namespace sinew
