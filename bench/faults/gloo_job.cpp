// Gloo in bench/faults: RANK and WORLD_SIZE say who we are, a folder is where ranks meet.
#include <gloo/allreduce.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>

#include "job.hpp"

namespace sinew::faults {
namespace {

using ReduceFunction = void (*)(void*, const void*, const void*, std::size_t);

int number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 0 : std::atoi(text);
}

class GlooJob final : public Job {
 public:
  explicit GlooJob(const Orders& orders) {
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    gloo::rendezvous::FileStore store(orders.folder + "/meeting");
    context_ = std::make_shared<gloo::rendezvous::Context>(number("RANK"), number("WORLD_SIZE"));
    context_->setTimeout(std::chrono::milliseconds(orders.deadline_ms));
    context_->connectFullMesh(store, device_ = gloo::transport::tcp::CreateDevice(where));
  }
  [[nodiscard]] int rank() const override { return context_->rank; }
  [[nodiscard]] int size() const override { return context_->size; }
  void allreduce(float* data, std::size_t elements, Op op, unsigned /*tag*/) override {
    const ReduceFunction sum = &gloo::sum<float>, max = &gloo::max<float>;
    reduce(data, elements, op == Op::sum ? sum : max);
  }
  void allreduce(std::int32_t* data, std::size_t elements) override {
    reduce(data, elements, &gloo::sum<std::int32_t>);
  }
  void broadcast(float* data, std::size_t elements, int root) override {
    gloo::BroadcastOptions options(context_);
    options.setTag(tag_++);
    options.setOutput(data, elements);
    options.setRoot(root);
    gloo::broadcast(options);
  }

 private:
  template <class T>
  void reduce(T* data, std::size_t elements, ReduceFunction function) {
    gloo::AllreduceOptions options(context_);
    options.setTag(tag_++);
    options.setOutput(data, elements);
    options.setReduceFunction(function);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint32_t tag_ = 0;
};

int run(const Orders& orders) {
  try {
    static GlooJob job(orders);  // never destroyed: that would wait for ranks that may be gone
    return play(job, orders);
  } catch (const std::exception& error) {
    return could_not_join(orders, error.what());
  }
}

}  // namespace
}  // namespace sinew::faults

int main(int argc, char** argv) {
  ::_exit(sinew::faults::run(sinew::faults::Orders::read(argc, argv)));
}
