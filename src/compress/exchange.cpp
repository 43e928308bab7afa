#include <algorithm>

#include <sinew/scheme.hpp>
#include "compress/role.hpp"

namespace sinew {
namespace {

// Of a scheme's messages between two ranks: not likely to be a user's.
constexpr std::uint32_t kMessageTag = 0x5EED'C0DE;

std::uint64_t elapsed_ns(std::chrono::steady_clock::time_point begin) {
  return static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin).count());
}

std::uint64_t& wire_ns(StepReport& report) {
  return report.part_ns[static_cast<std::size_t>(Part::wire)];
}

}  // namespace

std::string_view name(Part part) noexcept {
  constexpr std::string_view kNames[kParts] = {"accumulate_select", "encode", "wire", "reduce",
                                               "decode"};
  return kNames[static_cast<std::size_t>(part)];
}

std::uint64_t StepReport::sent_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const auto& phase : bytes) total += phase.sent;
  return total;
}

std::uint64_t StepReport::received_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const auto& phase : bytes) total += phase.received;
  return total;
}

double StepReport::density() const noexcept {
  return elements == 0 ? 0 : static_cast<double>(items) / static_cast<double>(elements);
}

PhaseBytes& Exchange::bytes_of(std::string_view phase) {
  auto at = std::find_if(report.bytes.begin(), report.bytes.end(),
                         [&](const PhaseBytes& entry) { return entry.phase == phase; });
  if (at == report.bytes.end()) at = report.bytes.insert(at, {phase});
  return *at;
}

void Exchange::run(std::string_view phase, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  auto tagged = call;
  if (tagged.options.tag == 0) tagged.options.tag = role_tag(phase);
  communicator_.run(tagged);
  wire_ns(report) += elapsed_ns(begin);
  const auto moved = communicator_.last_moved();
  auto& bytes = bytes_of(phase);
  bytes.sent += moved.sent;
  bytes.received += moved.received;
}

void Exchange::send(std::string_view phase, std::span<const std::byte> data, int to) {
  const auto begin = std::chrono::steady_clock::now();
  communicator_.wait(communicator_.isend(data, to, kMessageTag));
  wire_ns(report) += elapsed_ns(begin);
  bytes_of(phase).sent += data.size();
}

void Exchange::recv(std::string_view phase, std::span<std::byte> data, int from) {
  const auto begin = std::chrono::steady_clock::now();
  communicator_.wait(communicator_.irecv(data, from, kMessageTag));
  wire_ns(report) += elapsed_ns(begin);
  bytes_of(phase).received += data.size();
}

bool Exchange::any_rank(std::string_view phase, bool mine) {
  std::int32_t any = mine ? 1 : 0;
  allreduce(phase, std::span(&any, 1), ReduceOp::max);
  return any != 0;
}

Exchange::Timed::Timed(StepReport& report, Part part) noexcept
    : report_(report),
      part_(part),
      begin_(std::chrono::steady_clock::now()),
      wire_ns_(wire_ns(report)) {}

Exchange::Timed::~Timed() {
  const auto meanwhile = wire_ns(report_) - wire_ns_;
  report_.part_ns[static_cast<std::size_t>(part_)] += elapsed_ns(begin_) - meanwhile;
}

}  // namespace sinew
