#include "imports/import.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <sinew/error.hpp>
#include "imports/readers.hpp"

namespace sinew::imports {
namespace {

struct Kind {
  Format format;
  std::string_view name;
  trace::Profile (*read)(std::span<const Source>);
};
constexpr Kind kKinds[] = {{Format::mpitrace, "mpitrace", read_mpitrace},
                           {Format::mpip, "mpiP", read_mpip},
                           {Format::horovod, "Horovod timeline", read_horovod},
                           {Format::kineto, "PyTorch profiler", read_kineto}};

const Kind& kind_of(Format format) noexcept { return kKinds[static_cast<std::size_t>(format)]; }

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<Format> format_of_json(std::string_view text) {
  // Both show themselves at once; only what is neither is read to its end.
  constexpr std::size_t kBeginning = 1U << 20U;
  for (const auto part : {text.substr(0, kBeginning), text}) {
    if (has(part, "\"NEGOTIATE_") || has(part, "start_time_since_epoch_in_micros"))
      return Format::horovod;
    if (has(part, "\"traceEvents\"") &&
        (has(part, "\"schemaVersion\"") || has(part, "\"deviceProperties\"") ||
         has(part, "\"cpu_op\"") || has(part, "\"kernel\"") || has(part, "ProfilerStep#")))
      return Format::kineto;
  }
  return {};
}

Format demand_format(const Source& source) {
  if (const auto format = format_of(source.text)) return *format;
  const auto refuse = [&](std::string_view why) {
    throw Error(Errc::invalid_argument, fmt::format("{}:1: {}", source.name, why));
  };
  const auto text = source.text;
  if (text.empty()) refuse("the file is empty");
  if (text.starts_with("\x1F\x8B"))
    refuse(fmt::format("is compressed; unpack it: zcat {} | sinew import -", source.name));
  if (text.starts_with("SNWB")) refuse("is a trace of Sinew itself: sinew report FOLDER");
  if (text.find_first_not_of(" \t\r\n") != std::string_view::npos &&
      has("[{", text.substr(text.find_first_not_of(" \t\r\n"), 1)))
    refuse("is JSON, but neither a timeline of Horovod nor a trace of the PyTorch profiler");
  refuse(
      "what is this? Known are mpitrace's text, mpiP's report, timelines of Horovod and traces of "
      "the PyTorch profiler");
  return {};
}

}  // namespace

std::string_view name(Format format) noexcept { return kind_of(format).name; }

std::optional<Format> format_of(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos || text.substr(0, 4096).find('\0') != std::string_view::npos)
    return {};  // a program, say
  if (text[first] == '[' || text[first] == '{') return format_of_json(text);
  if (text.substr(first).starts_with("@ mpiP")) return Format::mpip;
  if (text.starts_with("Data for MPI rank") || has(text, "\nData for MPI rank"))
    return Format::mpitrace;
  return {};
}

trace::Profile import_profile(std::span<const Source> sources) {
  if (sources.empty()) throw Error(Errc::invalid_argument, "import which files?");
  const auto format = demand_format(sources[0]);
  for (const auto& source : sources.subspan(1))
    if (const auto other = demand_format(source); other != format)
      throw Error(Errc::invalid_argument,
                  fmt::format("{}:1: is of {}, but {} is of {}; import files of one kind",
                              source.name, name(other), sources[0].name, name(format)));
  auto profile = kind_of(format).read(sources);
  profile.source = name(format);
  const auto known = std::count_if(profile.ranks.begin(), profile.ranks.end(),
                                   [](const auto& rank) { return !rank.rows.empty(); });
  if (const int size = profile.ranks.front().size; known < size)
    profile.warnings.push_back(fmt::format(
        "calls of {} of {} ranks are in what was imported; sums are over these", known, size));
  trace::sum_over_ranks(profile);
  return profile;
}

}  // namespace sinew::imports
