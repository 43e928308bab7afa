#include "runtime/tracing.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include <sinew/algorithms.hpp>
#include <sinew/error.hpp>
#include "base/roles.hpp"
#include "trace/recorder.hpp"
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

std::string host_name() {
  char name[256] = "host";
  ::gethostname(name, sizeof name - 1);
  return name;
}

/// A process may trace more than once.
std::string free_path(const std::string& folder) {
  for (int i = 1;; ++i) {
    auto path = fmt::format("{}/{}.{}{}.trace", folder, host_name(), ::getpid(),
                            i == 1 ? "" : fmt::format("-{}", i));
    std::error_code none;
    if (!std::filesystem::exists(path, none)) return path;
  }
}

}  // namespace

std::string trace_path(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed)
    throw Error(Errc::system,
                fmt::format("cannot make the folder for traces {}: {}", folder, failed.message()));
  return free_path(folder);
}

void note_process(trace::Writer& writer, int rank, int size) {
  writer.note(trace::NoteKind::info, 0, "producer=sinew");
  writer.note(trace::NoteKind::info, 0, fmt::format("rank={}", rank));
  writer.note(trace::NoteKind::info, 0, fmt::format("size={}", size));
  writer.note(trace::NoteKind::info, 0, "host=" + host_name());
  writer.note(trace::NoteKind::info, 0, fmt::format("cores={}", ::sysconf(_SC_NPROCESSORS_ONLN)));
  for (const auto& algorithm : algorithms())
    writer.note(trace::NoteKind::algorithm, algorithm_key(algorithm.name), algorithm.name);
  for (const auto role : kRoles) writer.note(trace::NoteKind::label, role_tag(role), role);
}

std::shared_ptr<Observer> trace_to(const std::string& folder, int rank, int size) {
  auto recorder =
      std::make_shared<trace::Recorder>(trace::WriterOptions{.path = trace_path(folder)});
  note_process(recorder->writer(), rank, size);
  return recorder;
}

}  // namespace sinew
