// `sinew import`: profiles that other tools wrote, shown as our own.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <sinew/error.hpp>
#include "cli/arguments.hpp"
#include "cli/profile_output.hpp"
#include "cli/verbs.hpp"
#include "imports/import.hpp"

namespace sinew {
namespace {

/// A file as memory: traces can be larger than it. What cannot be mapped is read.
class FileText {
 public:
  explicit FileText(const std::string& path) {
    const int descriptor = path == "-" ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (path != "-" && descriptor < 0)
      throw Error(Errc::invalid_argument, fmt::format("{}: {}", path, std::strerror(errno)));
    struct stat about {};
    if (descriptor >= 0 && ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) &&
        about.st_size > 0) {
      const auto bytes = static_cast<std::size_t>(about.st_size);
      void* const mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
      if (mapped != MAP_FAILED) mapped_ = {static_cast<const char*>(mapped), bytes};
    }
    if (descriptor >= 0) ::close(descriptor);
    if (mapped_.empty()) read_ = read_text(path);
  }
  ~FileText() {
    if (!mapped_.empty()) ::munmap(const_cast<char*>(mapped_.data()), mapped_.size());
  }
  FileText(const FileText&) = delete;
  FileText& operator=(const FileText&) = delete;
  [[nodiscard]] std::string_view text() const noexcept {
    return mapped_.empty() ? std::string_view(read_) : mapped_;
  }

 private:
  std::string_view mapped_;
  std::string read_;
};

}  // namespace

int run_import(int argc, char** argv) {
  CLI::App app{
      "Reads what other profilers wrote and reports it as our own: mpitrace's text, mpiP's report, "
      "timelines of Horovod, traces of the PyTorch profiler. The format is known by the content.",
      "sinew import"};
  std::vector<std::string> paths;
  ProfileOutput output;
  app.add_option("file", paths, "of one run, all of one kind; - is standard input")->required();
  add_output_options(app, output);
  if (const auto status = parse(app, argc, argv)) return *status;
  std::vector<std::unique_ptr<FileText>> files;
  std::vector<imports::Source> sources;
  for (const auto& path : paths) {
    files.push_back(std::make_unique<FileText>(path));
    sources.push_back({path == "-" ? "standard input" : path, files.back()->text()});
  }
  output.title = fmt::format("Communication in {}", fmt::join(paths, ", "));
  output.command = command_line("sinew import", argc, argv);
  const auto options = summary_options(output);
  Report report{imports::import_profile(sources), {}};
  report.summary = report::summarize(report.profile, options);
  write_report(report, output);
  return kFine;
}

}  // namespace sinew
