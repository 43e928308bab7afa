#include "torch_backend/compressed.hpp"

#include <algorithm>

namespace sinew {

CompressedBuckets::CompressedBuckets(c10::intrusive_ptr<Backend> backend, const std::string& scheme,
                                     CompressionOptions options, std::optional<bool> on_device)
    : backend_(std::move(backend)),
      scheme_(find_scheme(scheme)),
      options_(std::move(options)),
      on_device_(on_device) {}

bool CompressedBuckets::stays(const at::Tensor& bucket) const {
  return scheme_.far && !options_.measure && on_device_.value_or(!bucket.device().is_cpu());
}

WorkPtr CompressedBuckets::allreduce(at::Tensor bucket, std::vector<TensorSpec> layout) {
  return stays(bucket) ? allreduce_far(std::move(bucket), std::move(layout))
                       : allreduce_staged(std::move(bucket), std::move(layout));
}

Backend::Job CompressedBuckets::job_of(const at::Tensor& bucket, const at::Tensor& used,
                                       const std::vector<TensorSpec>& layout) {
  Backend::Job job;
  job.type = c10d::OpType::ALLREDUCE;
  job.name = std::string(scheme_.name) + " allreduce of bucket '" +
             (layout.empty() ? "" : layout.front().name) + "'";
  if (layout.size() > 1) job.name += " and " + std::to_string(layout.size() - 1) + " more";
  job.results = {bucket};
  job.side = backend_->side_of({used});
  return job;
}

// Compressors take float32; other types pass through it.
WorkPtr CompressedBuckets::allreduce_staged(at::Tensor bucket, std::vector<TensorSpec> layout) {
  const bool converts = bucket.scalar_type() != at::kFloat;
  const auto used = converts ? bucket.to(at::kFloat) : bucket;
  auto job = job_of(bucket, used, layout);
  auto* const side = job.side;
  job.staged.emplace_back(Tensors{used}, Staged::Use::both, side);
  if (side != nullptr) bucket.record_stream(side->stream());
  return backend_->issue(
      std::move(job), [self = shared_from_this(), layout = std::move(layout), bucket, used,
                       converts, side](Communicator& communicator, std::vector<Staged>& staged) {
        auto& found = self->bucket_for(communicator, layout);
        const std::span gradient(static_cast<float*>(staged.front().data()),
                                 static_cast<std::size_t>(staged.front().elements()));
        found.report = found.compressor.allreduce(gradient);
        if (converts) {
          const at::NoGradGuard no_grad;
          std::optional<c10::StreamGuard> on;
          if (side != nullptr) on.emplace(side->stream());
          staged.front().write_back();
          at::Tensor(bucket).copy_(used);
        }
        return Request{};
      });
}

WorkPtr CompressedBuckets::allreduce_far(at::Tensor bucket, std::vector<TensorSpec> layout) {
  const auto used = bucket.to(at::kFloat).view({-1});
  auto job = job_of(bucket, used, layout);
  auto* const side = job.side;
  if (side != nullptr) {
    used.record_stream(side->stream());
    bucket.record_stream(side->stream());
  }
  return backend_->issue(
      std::move(job), [self = shared_from_this(), layout = std::move(layout), bucket, used, side](
                          Communicator& communicator, std::vector<Staged>&) {
        const at::NoGradGuard no_grad;
        std::optional<c10::StreamGuard> on;
        if (side != nullptr) on.emplace(side->stream());
        auto& found = self->bucket_for(communicator, layout);
        if (found.far == nullptr) found.far = std::make_unique<DeviceGradient>();
        found.far->set_bucket(used);
        found.report = found.compressor.allreduce(*found.far);
        if (bucket.scalar_type() != at::kFloat) at::Tensor(bucket).copy_(used);
        return Request{};
      });
}

namespace {

bool overlap(const std::vector<TensorSpec>& one, const std::vector<TensorSpec>& other) {
  return std::any_of(one.begin(), one.end(), [&](const TensorSpec& tensor) {
    return std::find(other.begin(), other.end(), tensor) != other.end();
  });
}

}  // namespace

// A bucket with parameters of another one means that all were cut anew: nobody's state may stay
// behind.
CompressedBuckets::Bucket& CompressedBuckets::bucket_for(Communicator& communicator,
                                                         std::vector<TensorSpec> layout) {
  for (auto& known : buckets_)
    if (known.layout == layout) return known;
  for (const auto& known : buckets_)
    if (overlap(known.layout, layout)) {
      kept_ = snapshot();
      buckets_.clear();
      break;
    }
  Bucket fresh{layout, Compressor(communicator, scheme_, layout, options_), {}, {}};
  take_over(fresh.compressor, layout);
  return buckets_.emplace_back(std::move(fresh));
}

// The same bucket goes on exactly as it was. Of one that was cut anew the residuals are exact; what
// a scheme remembers of a bucket as a whole is that of some old one, and settles in a step or two.
void CompressedBuckets::take_over(Compressor& compressor,
                                  const std::vector<TensorSpec>& layout) const {
  State merged;
  for (const auto& [old, state] : kept_) {
    if (old == layout) return compressor.load(state);
    for (const auto& [name, array] : state.arrays()) merged.put(name, array.dtype, array.bytes);
  }
  if (!kept_.empty()) compressor.load(merged);
}

std::vector<KeptBucket> CompressedBuckets::snapshot() const {
  std::vector<KeptBucket> all;
  for (const auto& bucket : buckets_) {
    auto& state = all.emplace_back(KeptBucket{bucket.layout, {}}).state;
    bucket.compressor.save(state);
    if (bucket.far != nullptr) bucket.far->save(bucket.layout, state);
  }
  for (const auto& kept : kept_)
    if (std::none_of(buckets_.begin(), buckets_.end(),
                     [&](const Bucket& live) { return overlap(live.layout, kept.layout); }))
      all.push_back(kept);
  return all;
}

void CompressedBuckets::run(const std::function<void()>& body) {
  Backend::Job job;
  job.type = c10d::OpType::UNKNOWN;
  job.name = "state of compressed buckets";
  backend_
      ->issue(std::move(job),
              [&](Communicator&, std::vector<Staged>&) {
                body();
                return Request{};
              })
      ->wait(kNoTimeout);
}

std::vector<StepReport> CompressedBuckets::reports() {
  std::vector<StepReport> all;
  run([&] {
    for (const auto& bucket : buckets_) all.push_back(bucket.report);
  });
  return all;
}

std::vector<KeptBucket> CompressedBuckets::save() {
  std::vector<KeptBucket> all;
  run([&] { all = snapshot(); });
  return all;
}

void CompressedBuckets::load(std::vector<KeptBucket> kept) {
  run([&] {
    buckets_.clear();
    kept_ = std::move(kept);
  });
}

}  // namespace sinew
