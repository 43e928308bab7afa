// Recorded sound: files in and out, and another number of samples a second.
#pragma once

#include <filesystem>
#include <vector>

namespace sinew {

struct Sound {
  int rate = 16000;            // samples a second
  std::vector<float> samples;  // within [-1, 1]
};

/// WAV or NIST SPHERE (as AN4 has it), 16 bits a sample, uncompressed; of several channels the
/// mean. Throws Error{system} when it cannot be read, and Error{invalid_argument} that names the
/// file when it is something else or shorter than it says.
Sound read_sound(const std::filesystem::path& path);

/// Written beside and renamed. Throws Error{system}.
void write_wav(const std::filesystem::path& path, const Sound& sound);

/// The same sound at `rate`, band-limited, and `speed` times as fast.
Sound resample(const Sound& sound, int rate, double speed = 1);

}  // namespace sinew
