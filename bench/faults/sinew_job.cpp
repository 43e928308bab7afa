// Sinew in bench/faults, as connect() finds it by the environment.
#include <sinew/sinew.hpp>

#include "job.hpp"

namespace sinew::faults {
namespace {

class SinewJob final : public Job {
 public:
  explicit SinewJob(const Orders& orders)
      : comm_(connect({.timeout = std::chrono::milliseconds(orders.deadline_ms)})) {}
  [[nodiscard]] int rank() const override { return comm_.rank(); }
  [[nodiscard]] int size() const override { return comm_.size(); }
  void allreduce(float* data, std::size_t elements, Op op, unsigned tag) override {
    comm_.allreduce(std::span(data, elements), op == Op::sum ? ReduceOp::sum : ReduceOp::max,
                    {.tag = tag});
  }
  void allreduce(std::int32_t* data, std::size_t elements) override {
    comm_.allreduce(std::span(data, elements));
  }
  void broadcast(float* data, std::size_t elements, int root) override {
    comm_.broadcast(std::span(data, elements), root);
  }

 private:
  Communicator comm_;
};

}  // namespace
}  // namespace sinew::faults

int main(int argc, char** argv) {
  const auto orders = sinew::faults::Orders::read(argc, argv);
  try {
    sinew::faults::SinewJob job(orders);
    return sinew::faults::play(job, orders);
  } catch (const std::exception& error) {
    return sinew::faults::could_not_join(orders, error.what());
  }
}
