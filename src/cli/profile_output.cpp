#include "cli/profile_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/networks.hpp"
#include "cli/profile_report.hpp"
#include "model/network_file.hpp"
#include "report/mpitrace_text.hpp"
#include "report/report_page.hpp"

namespace sinew {
namespace {

using report::MpitraceLayout;
using trace::Profile;
using trace::RankProfile;

constexpr std::array<std::string_view, 8> kFormats{
    "text", "html", "md", "json", "csv", "profile-json", "mpitrace", "mpitrace-older"};

const RankProfile& rank_with_calls(const Profile& profile, int number) {
  for (const auto& rank : profile.ranks)
    if (rank.rank == number && !rank.routines.empty()) return rank;
  throw Error(Errc::invalid_argument,
              fmt::format("there are no calls of rank {} in this profile", number));
}

/// Those asked for, or those mpitrace would write as far as their calls are known.
std::vector<int> ranks_to_write(const Profile& profile, const ProfileOutput& output,
                                const report::CommunicationRanks& chosen) {
  std::vector<int> ranks;
  const bool all = output.ranks == "all";
  if (!output.ranks.empty() && !all)
    for (const auto word : split(output.ranks, ',')) {
      const std::string text(word);
      if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos ||
          text.size() > 8)
        throw Error(Errc::invalid_argument,
                    fmt::format("'{}' is no rank; write --ranks 0,3 or --ranks all", text));
      ranks.push_back(rank_with_calls(profile, std::stoi(text)).rank);
    }
  if (!ranks.empty()) return ranks;
  const auto usual = report::ranks_with_files(chosen);
  for (const auto& rank : profile.ranks)
    if (!rank.routines.empty() &&
        (all || std::find(usual.begin(), usual.end(), rank.rank) != usual.end()))
      ranks.push_back(rank.rank);
  if (ranks.empty())
    throw Error(Errc::invalid_argument, "no rank of this profile has calls to write");
  return ranks;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) {
    const int reason = errno;
    std::error_code none;
    std::filesystem::remove(path, none);  // half a report reads like a whole one
    throw Error(Errc::system, fmt::format("cannot write {}: {}", path, std::strerror(reason)));
  }
  fmt::print(stderr, "{}\n", path);
}

void write_mpitrace(const Profile& profile, const ProfileOutput& output, MpitraceLayout layout) {
  const auto chosen = report::communication_ranks(profile.ranks);
  auto ranks = ranks_to_write(profile, output, chosen);
  if (output.folder.empty()) {
    if (output.ranks.empty()) ranks.resize(1);  // the one with the summary
    for (const int rank : ranks)
      fmt::print("{}", mpitrace_text(profile, rank_with_calls(profile, rank), chosen, layout));
    return;
  }
  std::filesystem::create_directories(output.folder);
  for (const int rank : ranks)
    write_file(output.folder + "/" + report::mpitrace_file_name(output.job, rank),
               mpitrace_text(profile, rank_with_calls(profile, rank), chosen, layout));
}

using Files = std::vector<std::pair<std::string, std::string>>;  // name and text

std::string extra_html(const Report& report) {
  std::string text;
  for (const auto& table : report.extra)
    text += fmt::format("<h2>{}</h2>\n", table.title) + report::table_html(table, "");
  return text;
}

Files files_of(const Report& report, const ProfileOutput& output, std::string_view format) {
  const auto& summary = report.summary;
  if (format == "text")
    return {{"report.txt", report::to_text(summary, output.title, report.extra)}};
  if (format == "profile-json") return {{"profile.json", profile_json(report.profile)}};
  if (format == "html")
    return {{"report.html",
             report::to_html(summary, output.title, output.command, extra_html(report))}};
  if (format == "md")
    return {
        {"report.md", report::to_markdown(summary, output.title, output.command, report.extra)}};
  if (format == "csv") return report::to_csv(summary);
  return {{"report.json", report::to_json(summary)}};
}

void write_files(const Files& files, const std::string& folder) {
  if (folder.empty() && files.size() == 1) {
    fmt::print("{}", files.front().second);
    return;
  }
  if (folder.empty())
    throw Error(Errc::invalid_argument, "that is several files; say where they go: -o FOLDER");
  std::filesystem::create_directories(folder);
  for (const auto& [name, text] : files) write_file(fmt::format("{}/{}", folder, name), text);
}

}  // namespace

void add_output_options(CLI::App& app, ProfileOutput& output) {
  app.add_option("--format", output.format,
                 "text (default), html (one page with charts), md, json, csv, profile-json (every "
                 "row), mpitrace, mpitrace-older (its layout before 2019); several with commas");
  app.add_option("-o,--output", output.folder,
                 "folder for the files: report.html, report.md ..., mpi_profile.JOB.RANK; else one "
                 "is printed");
  app.add_option("--ranks", output.ranks,
                 "for mpitrace: these (0,3) or all; else rank 0 and those of the least, median and "
                 "most communication");
  app.add_option("--job", output.job, "JOB in those names (0)");
  app.add_option("--net", output.network,
                 "a network model (net.toml of `sinew calibrate`, or alpha=5us,bw=25GB/s): rates "
                 "beside its link, and what it says about the calls");
  app.add_option("--link", output.link, "what a link carries, as stated: 12.5GB/s, 200Gbit/s");
  app.add_flag("--json", output.json, "the same as --format json");
}

report::SummaryOptions summary_options(const ProfileOutput& output) {
  report::SummaryOptions options;
  if (!output.network.empty()) options.network = load_network(output.network);
  if (!output.link.empty())
    options.link_bytes_per_s =
        1e12 / parse_network_line("alpha=0us,bw=" + output.link).one_way.segments().back().byte_ps;
  return options;
}

void write_report(const Report& report, const ProfileOutput& output) {
  const std::string formats = output.json ? "json" : output.format;
  for (const auto format : split(formats, ','))
    if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end())
      throw Error(Errc::invalid_argument, unknown("format", format, kFormats));
  Files files;
  for (const auto format : split(formats, ',')) {
    if (format.starts_with("mpitrace")) {
      write_mpitrace(report.profile, output,
                     format == "mpitrace" ? MpitraceLayout::today : MpitraceLayout::older);
      continue;
    }
    auto more = files_of(report, output, format);
    files.insert(files.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
  }
  if (!files.empty()) write_files(files, output.folder);
}

}  // namespace sinew
