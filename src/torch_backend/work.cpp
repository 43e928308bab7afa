#include "torch_backend/work.hpp"

#include <deque>
#include <mutex>

namespace sinew {
namespace {

// Python has one interpreter a process, and so are these.
std::atomic<BackendError::TypeOf> type_of_error{nullptr};

struct Memory {
  static constexpr std::size_t kMost = 64;
  std::mutex mutex;
  std::deque<std::pair<std::string, Error>> errors;
};
Memory& memory() {
  static Memory all;
  return all;
}

}  // namespace

BackendError::BackendError(const Error& cause, const std::string& what)
    : torch::PyTorchError(what), error(cause) {
  const std::scoped_lock lock(memory().mutex);
  memory().errors.emplace_front(what, cause);
  if (memory().errors.size() > Memory::kMost) memory().errors.pop_back();
}

PyObject* BackendError::python_type() {
  const auto type_of = type_of_error.load();
  return type_of == nullptr ? PyExc_RuntimeError : type_of(error.code());
}
void BackendError::name_types(TypeOf type_of) noexcept { type_of_error.store(type_of); }

std::optional<Error> recall_error(const std::string& text) {
  const std::scoped_lock lock(memory().mutex);
  for (const auto& [what, error] : memory().errors)
    if (what == text) return error;
  return {};
}

BackendWork::BackendWork(int rank, c10d::OpType type, std::shared_ptr<Lane> lane,
                         std::vector<at::Tensor> results, std::vector<c10::Device> devices,
                         std::chrono::milliseconds timeout, std::shared_ptr<const int> source)
    : Work(rank, type),
      lane_(std::move(lane)),
      results_(std::move(results)),
      timeout_(timeout),
      source_(std::move(source)),
      future_(c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()), std::move(devices))) {}

int BackendWork::sourceRank() const {
  if (source_ == nullptr) return Work::sourceRank();
  return future_->completed() ? *source_ : -1;
}

// The operation's own deadline ends it in any case; this wait may be told to end sooner, and then
// the operation goes on.
bool BackendWork::wait(std::chrono::milliseconds timeout) {
  const auto until = timeout > kNoTimeout ? Clock::now() + timeout : Clock::time_point::max();
  if (const auto lane = lane_.lock(); lane != nullptr && !future_->completed())
    if (!lane->help_until([&] { return future_->completed(); }, until))
      throw BackendError(Error(Errc::timeout, "wait", {.rank = rank_}),
                         c10::str("rank ", rank_, ": an operation is not done after ",
                                  timeout.count(), " ms, and goes on"));
  future_->wait();
  if (future_->hasError()) std::rethrow_exception(future_->exception_ptr());
  return true;
}

void BackendWork::abort() {
  if (const auto lane = lane_.lock()) lane->abort(c10::str("rank ", rank_, " aborted the group"));
}

void BackendWork::end(std::exception_ptr failure, SideStream* side) {
  if (failure) return future_->setError(std::move(failure));
  if (side == nullptr) return future_->markCompleted(c10::IValue(results_));
  const c10::StreamGuard on(side->stream());
  future_->markCompleted(c10::IValue(results_));
}

}  // namespace sinew
