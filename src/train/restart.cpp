#include "train/restart.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>

namespace sinew {
namespace {

std::vector<State> own_states(const Snapshot& own) {
  std::vector<State> states;
  for (const auto& [name, array] : own.state.arrays()) {
    std::size_t bucket = 0;
    const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), bucket);
    if (status != std::errc{} || *end != '/' || bucket >= own.state.arrays().size())
      throw Error(Errc::invalid_argument,
                  fmt::format("the checkpoint has '{}', which is of no bucket", name));
    if (bucket >= states.size()) states.resize(bucket + 1);
    states[bucket].put(end + 1, array.dtype, array.bytes);
  }
  return states;
}

}  // namespace

nlohmann::json Restart::identity() const {
  return {{"model", options_.model},
          {"data", options_.data},
          {"seed", options_.seed},
          {"global_batch", global_batch_},
          {"optimizer", options_.optimizer.kind},
          {"bucket_bytes", options_.bucket_bytes}};  // moments and residuals are in its order
}

bool Restart::save(std::uint64_t step, TrainWatcher& watcher) {
  Snapshot shared, own;
  shared.metadata = nlohmann::json{
      {"sinew", "checkpoint"},
      {"version", 1},
      {"step", step},
      {"workers", communicator_.size()},
      {"run",
       identity()}}.dump();
  if (communicator_.rank() == 0) {
    memory_.save(shared);
    optimizer_.save(shared.state);
  }
  const auto kept = reducer_.save();
  for (std::size_t bucket = 0; bucket < kept.size(); ++bucket)
    for (const auto& [name, array] : kept[bucket].arrays())
      own.state.put(fmt::format("{}/{}", bucket, name), array.dtype, array.bytes);
  own.metadata = shared.metadata;
  if (!checkpoints_.save(communicator_, step, shared, own,
                         [&](std::string_view text) { watcher.on_warning(text); }))
    return false;
  watcher.on_saved(step, checkpoints_.path_of(step).string());
  return true;
}

std::uint64_t Restart::resume() {
  const auto steps = checkpoints_.steps();
  if (steps.empty())
    throw Error(Errc::invalid_argument,
                fmt::format("no checkpoint in '{}' to resume from", options_.folder));
  const auto shared = checkpoints_.load_shared(steps.back());
  check_identity(shared);
  memory_.load(shared);
  optimizer_.load(shared.state);
  const auto step = steps.back();
  reducer_.load(step, own_states(checkpoints_.load_own(step, communicator_.rank())));
  return step;
}

void Restart::check_identity(const Snapshot& shared) const {
  const auto metadata = nlohmann::json::parse(shared.metadata, nullptr, false);
  if (!metadata.is_object() || metadata.value("sinew", "") != "checkpoint")
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' holds tensors that are no checkpoint", options_.folder));
  const auto run = metadata.value("run", nlohmann::json::object());
  const auto wanted = identity();
  for (const auto& [key, value] : wanted.items())
    if (const auto was = run.value(key, nlohmann::json()); was != value)
      throw Error(Errc::invalid_argument,
                  fmt::format("the checkpoint in '{}' has {} {}, this run has {}{}",
                              options_.folder, key, was.dump(), value.dump(),
                              key == "global_batch" ? "; say --global-batch " + was.dump() : ""));
  const int workers = metadata.value("workers", 0);
  if (!options_.compression.is_dense() && workers != communicator_.size())
    throw Error(Errc::invalid_argument,
                fmt::format("the checkpoint has what {} workers kept back, this run has {}",
                            workers, communicator_.size()));
}

}  // namespace sinew
