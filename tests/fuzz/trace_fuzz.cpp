// A trace file that someone has meddled with.
#include <algorithm>
#include <span>
#include <vector>

#include <sinew/error.hpp>
#include "require.hpp"
#include "trace/profile.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  // The corpus holds what differs from zero of each block; the rest is filled up here, so that
  // changes hit what counts.
  std::vector<std::byte> file;
  constexpr std::size_t kPiece = 512;
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const auto piece = std::min(kPiece, bytes - at);
    const auto* const begin = reinterpret_cast<const std::byte*>(data + at);
    file.insert(file.end(), begin, begin + piece);
    if (at + kPiece <= bytes) file.resize((at / kPiece + 1) * trace::kBlockBytes);
  }
  try {
    const auto read = trace::read_trace(file);
    for (const auto& record : read.records)
      require(record.counter < read.counters.size(), "every record has its counters");
    for (const auto& [id, text] : read.notes)
      require(text.size() <= file.size(), "notes come from the file");
    // Twice, as of two ranks: clocks are compared, messages matched and loops looked for.
    require(trace::summarize({read, read}).ranks.size() == 2, "a trace is of one rank");
  } catch (const Error& error) {
    require(error.code() == Errc::invalid_argument, "what is no trace is an invalid argument");
  }
  return 0;
}
