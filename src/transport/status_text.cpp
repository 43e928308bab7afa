#include "transport/status_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>

namespace sinew {

std::uint64_t pack_kind(const OpDescriptor& d) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(d.root)} << 32 |
         std::uint64_t{static_cast<std::uint8_t>(d.op)} << 16 |
         std::uint64_t{static_cast<std::uint8_t>(d.dtype)} << 8 |
         static_cast<std::uint8_t>(d.collective);
}

OpDescriptor unpack(const StatusLine::Entry& entry) noexcept {
  const auto kind = entry.kind.load(std::memory_order_relaxed);
  return {
      static_cast<Collective>(kind & 0xff),        static_cast<DType>(kind >> 8 & 0xff),
      static_cast<ReduceOp>(kind >> 16 & 0xff),    static_cast<std::int32_t>(kind >> 32),
      entry.count.load(std::memory_order_relaxed), entry.algorithm.load(std::memory_order_relaxed),
      entry.tag.load(std::memory_order_relaxed)};
}

bool is_stopped(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  // "pid (name) state ...", and a name may hold anything.
  const auto end = line.rfind(')');
  return end != std::string::npos && end + 2 < line.size() &&
         (line[end + 2] == 'T' || line[end + 2] == 't');
}

std::string last_seen_in(const StatusLine& status) {
  const auto sequence = status.sequence.load(std::memory_order_acquire);
  auto text = fmt::format("last in operation #{}", sequence);
  const auto& entry = status.history[sequence % StatusLine::kHistory];
  if (entry.sequence_and_fingerprint.load(std::memory_order_acquire) >> 32 == sequence &&
      sequence != 0)
    text += fmt::format(", {}", describe(unpack(entry)));
  const auto pid = status.pid.load(std::memory_order_relaxed);
  if (pid != 0 && is_stopped(pid)) text += fmt::format("; process {} is stopped", pid);
  return text;
}

}  // namespace sinew
