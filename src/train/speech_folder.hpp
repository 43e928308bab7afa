// A folder of spoken sentences, laid out as AN4 is, as spectrograms with letters to learn.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/dataset.hpp"

namespace sinew {

/// One recording and what is said in it.
struct Utterance {
  std::filesystem::path sound;
  std::string text;  // A to Z, apostrophe and space
};

/// What `part` ("train" or "test") of the folder holds: etc/*_PART.transcription has a line
/// "WORDS (id)" each, with or without <s> and </s>; the sound is FOLDER/wav/ID.wav or .sph, where
/// etc/*_PART.fileids may give ID with folders before it. Throws Error that names the file, and the
/// line, of what is missing or cannot be read.
std::vector<Utterance> list_speech(const std::filesystem::path& folder, std::string_view part);

/// `most`: so many utterances for training and a fourth of it for testing; 0: all. Those for
/// training vary by seed and utterance: a little faster or slower, louder or softer, with noise.
Data open_speech(const std::filesystem::path& folder, std::size_t most, std::uint64_t seed);

/// 1 for the apostrophe, 2 to 27 for A to Z, 28 for space; 0 is CTC's blank. Throws
/// Error{invalid_argument} that names a character that is none of these.
std::vector<std::int64_t> labels_of(std::string_view text);

}  // namespace sinew
