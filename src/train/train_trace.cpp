#include "train/train_trace.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>

#include <sinew/algorithms.hpp>
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

using trace::NoteKind;

// What comes before a dot is what reports add up.
constexpr std::array<std::string_view, 11> kParts{
    "iteration",      "data",       "compute.forward", "compute.backward",
    "compute.update", "compress",   "train.bucket",    "train.wait",
    "train.vote",     "train.save", "train.evaluate"};
constexpr std::array<std::string_view, 2> kPhases{"dense", "sparse"};

std::string host_name() {
  char name[256] = "host";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::uint64_t trace_now() noexcept { return trace::monotonic_ns(); }

TrainTrace::TrainTrace(const std::string& path, int rank, int size, std::string_view command)
    : recorder_({.path = path}), size_(size) {
  note("producer", "sinew train");
  note("rank", std::to_string(rank));
  note("size", std::to_string(size));
  note("host", host_name());
  note("command", command);
  auto& writer = recorder_.writer();
  for (const auto& algorithm : algorithms())
    writer.note(NoteKind::algorithm, algorithm_key(algorithm.name), algorithm.name);
  for (std::size_t i = 0; i < kParts.size(); ++i) writer.note(NoteKind::routine, i + 1, kParts[i]);
  for (std::size_t i = 0; i < kPhases.size(); ++i) writer.note(NoteKind::region, i + 1, kPhases[i]);
}

void TrainTrace::note(std::string_view key, std::string_view value) {
  recorder_.writer().note(NoteKind::info, 0, fmt::format("{}={}", key, value));
}

// A tag that nobody has named yet gets its number at once, and its name when it is known.
std::uint8_t TrainTrace::label_of(std::uint64_t tag) noexcept {
  if (tag == 0) return 0;
  const auto found = tags_.find(tag);
  if (found != tags_.end()) return found->second;
  if (tags_.size() >= 255) return 0;
  const auto label = static_cast<std::uint8_t>(tags_.size() + 1);
  tags_.emplace(tag, label);
  return label;
}

void TrainTrace::name_tag(std::uint64_t tag, std::string_view role) {
  const std::scoped_lock lock(mutex_);
  const auto label = label_of(tag);
  if (label == 0 || !named_.insert(label).second) return;
  recorder_.writer().note(NoteKind::label, label, role);
}

void TrainTrace::begin_bucket(std::uint64_t now_ns) noexcept {
  compressing_since_ns_ = phase_ == TrainPhase::sparse ? now_ns : 0;
}
void TrainTrace::end_bucket(std::uint64_t now_ns) noexcept {
  compressed_until(now_ns);
  compressing_since_ns_ = 0;
}
void TrainTrace::compressed_until(std::uint64_t now_ns) noexcept {
  const auto since = compressing_since_ns_;
  if (since != 0 && now_ns > since) add(TrainPart::compress, since, now_ns, 0);
}

void TrainTrace::on_event(const Event& event) noexcept {
  if (event.kind == EventKind::step) return;
  if (event.kind == EventKind::collective && compressing_since_ns_ != 0) {
    compressed_until(event.begin_ns);
    compressing_since_ns_ = event.end_ns;
  }
  record(event, 0);
}

void TrainTrace::record(const Event& event, std::uint64_t sent) noexcept {
  trace::Recorder::Extra extra;
  extra.region = static_cast<std::uint16_t>(phase_.load(std::memory_order_relaxed));
  extra.sent = sent;
  {
    const std::scoped_lock lock(mutex_);  // held for a lookup
    extra.label = label_of(event.tag);
    if (event.kind == EventKind::collective && event.communicator != communicator_) {
      communicator_ = event.communicator;
      recorder_.writer().note(NoteKind::communicator, communicator_,
                              fmt::format("workers\nsize={}", size_.load()));
    }
  }
  recorder_.add(event, extra);
}

void TrainTrace::add(TrainPart part, std::uint64_t begin_ns, std::uint64_t end_ns,
                     std::uint64_t step, std::uint64_t bytes, std::uint64_t sent,
                     std::uint64_t tag) noexcept {
  Event event;
  event.kind = EventKind::call;
  event.operation = static_cast<std::uint16_t>(part);
  event.sequence = static_cast<std::uint32_t>(step);
  event.bytes = bytes;
  event.tag = tag;
  event.begin_ns = begin_ns;
  event.end_ns = end_ns;
  record(event, sent);
}

void TrainTrace::close() { recorder_.writer().close(); }

}  // namespace sinew
