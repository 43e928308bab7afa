// mpitrace's text that someone has meddled with. What is read can be written, and read again.
#include "imports/readers.hpp"
#include "imports_property.hpp"
#include "report/mpitrace_text.hpp"

using namespace sinew;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const auto profile = imported(&imports::read_mpitrace, data, bytes);
  if (!profile) return 0;
  const auto chosen = report::communication_ranks(profile->ranks);
  for (const auto layout : {report::MpitraceLayout::today, report::MpitraceLayout::older})
    for (const auto& rank : profile->ranks) {
      if (rank.routines.empty()) continue;
      const auto text = mpitrace_text(*profile, rank, chosen, layout);
      const imports::Source again{"again", text};
      const auto read = imports::read_mpitrace({&again, 1});
      require(!read.ranks.empty(), "what is written can be read");
    }
  return 0;
}
