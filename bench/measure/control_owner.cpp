// The control segment as the parent sees it.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "measure/segment.hpp"

namespace sinew::bench {
namespace detail {

Mapping::Mapping(const Fd& file, std::size_t bytes)
    : memory_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0)),
      bytes_(bytes) {
  if (memory_ == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "mapping the control segment");
  }
}

Mapping::~Mapping() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

RankLine& Mapping::line(int rank) const noexcept {
  auto* base = static_cast<std::byte*>(memory_) + lines_offset();
  return reinterpret_cast<RankLine*>(base)[rank];
}

std::span<Stamp> Mapping::stamps(int rank) const noexcept {
  const auto ranks = static_cast<std::size_t>(segment().ranks);
  auto* base = static_cast<std::byte*>(memory_) + stamps_offset(ranks);
  return {reinterpret_cast<Stamp*>(base) + static_cast<std::size_t>(rank) * kMaxSamples,
          kMaxSamples};
}

std::span<std::uint64_t> Mapping::counts() const noexcept {
  const auto ranks = static_cast<std::size_t>(segment().ranks);
  auto* base = static_cast<std::byte*>(memory_) + counts_offset(ranks);
  return {reinterpret_cast<std::uint64_t*>(base), ranks * ranks};
}

void copy_text(std::array<char, kTextBytes>& to, std::string_view from) noexcept {
  const std::size_t length = std::min(from.size(), to.size() - 1);
  std::copy_n(from.data(), length, to.data());
  to[length] = '\0';
}

namespace {
Fd sized_memfd(std::size_t bytes) {
  Fd file = make_memfd("sinew-bench-control");
  if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw std::system_error(errno, std::generic_category(), "sizing the control segment");
  }
  return file;
}
}  // namespace
}  // namespace detail

ControlOwner::ControlOwner(int ranks)
    : file_(detail::sized_memfd(detail::segment_bytes(static_cast<std::size_t>(ranks)))),
      mapping_(file_, detail::segment_bytes(static_cast<std::size_t>(ranks))) {
  auto& segment = *new (&mapping_.segment()) detail::Segment;
  segment.ranks = ranks;
  segment.cores = allowed_cores();
  segment.parent = ::getpid();
  // The file begins as zeros, which is a RankLine as default-constructed; running its constructor
  // would touch every page of the notes.
  static_assert(RankState{} == RankState::absent);
}

std::string ControlOwner::path() const {
  return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get());
}

void ControlOwner::post(const Command& command) {
  auto& segment = mapping_.segment();
  check(command.what, segment.ranks);
  auto& posted = segment.posted;
  posted.collective = command.what.collective;
  posted.in_place = command.what.in_place;
  posted.rewrite = command.what.rewrite;
  posted.root = command.what.root;
  posted.element_bytes = command.what.element_bytes;
  posted.round = command.round;
  posted.bytes = command.what.bytes;
  posted.counts = command.what.counts.size();
  posted.limits = command.limits;
  posted.limits.samples = std::clamp<std::uint32_t>(command.limits.samples, 1, kMaxSamples);
  detail::copy_text(posted.options, command.what.options);
  std::ranges::copy(command.what.counts, mapping_.counts().begin());
  for (int rank = 0; rank < segment.ranks; ++rank) {
    mapping_.line(rank).state.store(RankState::running, std::memory_order_relaxed);
  }
  // Pairs with the acquire in Control::next_command(): the case before its number.
  segment.command.fetch_add(1, std::memory_order_release);
  futex_wake_all(segment.command);
}

void ControlOwner::dismiss() {
  auto& segment = mapping_.segment();
  segment.dismissed.store(true, std::memory_order_relaxed);
  segment.command.fetch_add(1, std::memory_order_release);  // as in post()
  futex_wake_all(segment.command);
}

void ControlOwner::wait_for_news(std::uint64_t timeout_ns) noexcept {
  auto& news = mapping_.segment().news;
  // Pairs with the release in Control::join() and finish(): a rank's results before its news.
  if (news.load(std::memory_order_acquire) == news_seen_) futex_wait(news, news_seen_, timeout_ns);
  news_seen_ = news.load(std::memory_order_acquire);
}

pid_t ControlOwner::pid(int rank) const noexcept {
  return mapping_.line(rank).pid.load(std::memory_order_acquire);
}

RankState ControlOwner::state(int rank) const noexcept {
  return mapping_.line(rank).state.load(std::memory_order_acquire);
}

std::string ControlOwner::message(int rank) const { return mapping_.line(rank).message.data(); }

std::uint64_t ControlOwner::wrong() const noexcept {
  std::uint64_t wrong = 0;
  for (int rank = 0; rank < mapping_.segment().ranks; ++rank)
    wrong += mapping_.line(rank).report.wrong;
  return wrong;
}

std::uint32_t ControlOwner::batch() const noexcept { return mapping_.line(0).report.batch; }

std::vector<double> ControlOwner::samples_us() const {
  const auto report = mapping_.line(0).report;
  const auto samples = std::min(report.samples, kMaxSamples);
  std::vector<double> times;
  times.reserve(samples);
  for (std::uint32_t sample = 0; sample < samples; ++sample) {
    auto [begin_ns, end_ns] = mapping_.stamps(0)[sample];
    for (int rank = 1; rank < mapping_.segment().ranks; ++rank) {
      const Stamp one = mapping_.stamps(rank)[sample];
      begin_ns =
          report.from_first ? std::min(begin_ns, one.begin_ns) : std::max(begin_ns, one.begin_ns);
      end_ns = std::max(end_ns, one.end_ns);
    }
    times.push_back(static_cast<double>(end_ns - begin_ns) * 1e-3 / report.batch);
  }
  return times;
}

}  // namespace sinew::bench
