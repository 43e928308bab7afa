// One operation as torch sees it, and the exception that it may end in.
#pragma once

#include <Python.h>

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sinew/error.hpp>
#include "torch_backend/lane.hpp"
#include "torch_backend/staged.hpp"

namespace sinew {

/// sinew::Error on its way to Python. torch carries exceptions through its futures and its autograd
/// engine, and asks those of this family which Python type they are.
struct BackendError : torch::PyTorchError {
  BackendError(const Error& cause, const std::string& what);
  PyObject* python_type() override;
  Error error;

  using TypeOf = PyObject* (*)(Errc);
  /// Which Python type an error is; told once, when the module is imported.
  static void name_types(TypeOf type_of) noexcept;
};

/// What is known of the error of this text, if it is one of the last: torch hands only texts on.
std::optional<Error> recall_error(const std::string& text);

class BackendWork final : public c10d::Work {
 public:
  /// `results`: the value of the future. `devices`: of those that are not on the host. `source`: of
  /// a recv from any rank, where its sender is written before the end.
  BackendWork(int rank, c10d::OpType type, std::shared_ptr<Lane> lane,
              std::vector<at::Tensor> results, std::vector<c10::Device> devices,
              std::chrono::milliseconds timeout, std::shared_ptr<const int> source);

  bool isCompleted() override { return future_->completed(); }
  bool isSuccess() const override { return future_->completed() && !future_->hasError(); }
  std::exception_ptr exception() const override {
    return future_->hasError() ? future_->exception_ptr() : nullptr;
  }
  int sourceRank() const override;
  std::vector<at::Tensor> result() override { return results_; }
  bool wait(std::chrono::milliseconds timeout) override;
  void synchronize() override { wait(kNoTimeout); }
  void abort() override;
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  /// The end. With `side` the results are there when its stream has come so far.
  void end(std::exception_ptr failure, SideStream* side);

 private:
  std::weak_ptr<Lane> lane_;  // which may be gone before this is
  std::vector<at::Tensor> results_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<const int> source_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

}  // namespace sinew
