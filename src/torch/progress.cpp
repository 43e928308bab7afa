#include "torch/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::chrono::nanoseconds kOnTerminal = std::chrono::milliseconds(200);
constexpr std::chrono::nanoseconds kElsewhere = std::chrono::seconds(5);

double milliseconds(std::uint64_t ns, std::uint64_t steps) {
  return static_cast<double>(ns) / 1e6 / static_cast<double>(std::max<std::uint64_t>(1, steps));
}

double mean_loss(const Score& score) {
  return score.loss / std::max(1.0, static_cast<double>(score.samples));
}

}  // namespace

TrainProgress::TrainProgress(const TrainCommand& command, int rank, int size)
    : command_(command), rank_(rank), size_(size), terminal_(::isatty(STDERR_FILENO) == 1) {
  if (command.folder.empty()) return;
  std::filesystem::create_directories(command.folder);
  metrics_.open(fmt::format("{}/metrics-rank-{}.jsonl", command.folder, rank),
                command.train.resume ? std::ios::app : std::ios::trunc);
  if (!metrics_) on_warning(fmt::format("cannot write metrics into '{}'", command.folder));
}
TrainProgress::~TrainProgress() { clear(); }

void TrainProgress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

bool TrainProgress::is_due(const StepRecord& record) {
  if (command_.log == Log::verbose) return true;
  // The clock has been read for the record; only now and then is it worth another look.
  const auto now = Clock::now();
  const bool is_last = record.step + 1 == record.steps && record.steps > 0;
  if (now - last_ < (terminal_ ? kOnTerminal : kElsewhere) && !is_last) return false;
  last_ = now;
  return true;
}

void TrainProgress::on_step(const StepRecord& record) {
  if (metrics_.is_open()) write_metrics(record);
  if (rank_ != 0 || command_.log == Log::silent) return;
  if (count_++ == 0) first_step_ = shown_steps_ = record.step;
  compute_ns_ += record.compute_ns;
  since_.hidden_ns += record.communication.hidden_ns;
  since_.exposed_ns += record.communication.exposed_ns;
  since_.bytes_sent += record.communication.bytes_sent;
  since_.items += record.communication.items;
  since_.elements += record.communication.elements;
  if (is_due(record)) show(record);
}

void TrainProgress::show(const StepRecord& record) {
  const auto done = record.step + 1;
  const auto steps = done - shown_steps_;
  const double seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
  const double rate = static_cast<double>(done - first_step_) / std::max(1e-9, seconds);
  const auto samples = static_cast<double>(record.score.samples) * size_ * rate;
  auto line = fmt::format(
      "step {}/{}  loss {:.4f}  {:.0f} samples/s  compute {:.2f} ms  communication {:.2f} hidden + "
      "{:.2f} exposed ms",
      done, record.steps, mean_loss(record.score), samples, milliseconds(compute_ns_, steps),
      milliseconds(since_.hidden_ns, steps), milliseconds(since_.exposed_ns, steps));
  if (since_.bytes_sent > 0)
    line += fmt::format("  {}/step  {:.1f}x less", human_bytes(since_.bytes_sent / steps),
                        static_cast<double>(since_.elements * sizeof(float)) /
                            static_cast<double>(since_.bytes_sent));
  if (record.steps > done)
    line += fmt::format("  {:.0f} s left", static_cast<double>(record.steps - done) / rate);
  if (terminal_)
    fmt::print(stderr, "\r{}\x1b[K", line);
  else
    fmt::print(stderr, "{}\n", line);
  std::fflush(stderr);
  shown_ = terminal_;
  shown_steps_ = done;
  compute_ns_ = 0;
  since_ = {};
}

void TrainProgress::write_metrics(const StepRecord& record) {
  const auto& c = record.communication;
  metrics_ << nlohmann::ordered_json{{"step", record.step},
                                     {"epoch", record.epoch},
                                     {"loss", mean_loss(record.score)},
                                     {"samples", record.score.samples},
                                     {"rate", record.rate},
                                     {"total_ns", record.total_ns},
                                     {"data_ns", record.data_ns},
                                     {"compute_ns", record.compute_ns},
                                     {"update_ns", record.update_ns},
                                     {"communication_ns", c.busy_ns},
                                     {"hidden_ns", c.hidden_ns},
                                     {"exposed_ns", c.exposed_ns},
                                     {"waiting_ns", c.waiting_ns},
                                     {"bytes_sent", c.bytes_sent},
                                     {"collectives", c.collectives},
                                     {"items", c.items}}
                  .dump()
           << '\n';
}

void TrainProgress::on_saved(std::uint64_t step, const std::string& path) {
  if (rank_ != 0 || command_.log == Log::silent) return;
  clear();
  fmt::print(stderr, "checkpoint of step {}: {}\n", step, path);
}

void TrainProgress::on_warning(std::string_view text) {
  clear();
  fmt::print(stderr, "sinew train: {}\n", text);
}

}  // namespace sinew
