// What the decorators of transports have in common: everything goes to the transport inside.
#pragma once

#include <memory>
#include <utility>

#include <sinew/transport.hpp>

namespace sinew {

/// Forwards every verb. A decorator overrides those it changes.
class Decorated : public Transport {
 public:
  explicit Decorated(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
  [[nodiscard]] int rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] int size() const noexcept override { return inner_->size(); }
  [[nodiscard]] Capabilities capabilities() const noexcept override {
    return inner_->capabilities();
  }
  [[nodiscard]] int cores() const noexcept override { return inner_->cores(); }
  [[nodiscard]] std::span<const int> node_of() const noexcept override { return inner_->node_of(); }
  [[nodiscard]] NodeLink between_nodes() const noexcept override { return inner_->between_nodes(); }
  [[nodiscard]] std::size_t slice_bytes() const noexcept override { return inner_->slice_bytes(); }
  Progress send(Transfer& transfer, std::span<const std::byte> data) noexcept override {
    return inner_->send(transfer, data);
  }
  Progress recv(Transfer& transfer, std::span<std::byte> data) noexcept override {
    return inner_->recv(transfer, data);
  }
  Progress recv_reduce(Transfer& transfer, std::span<std::byte> data,
                       const Reducer& reducer) noexcept override {
    return inner_->recv_reduce(transfer, data, reducer);
  }
  Board* board() noexcept override { return inner_->board(); }
  Arena* arena() noexcept override { return inner_->arena(); }
  Hotline* hotline() noexcept override { return inner_->hotline(); }
  [[nodiscard]] Clock::time_point now() const noexcept override { return inner_->now(); }
  void enter(OpTag tag, const OpDescriptor& descriptor) noexcept override {
    inner_->enter(tag, descriptor);
  }
  Progress park(bool moved, Deadline deadline) noexcept override {
    return inner_->park(moved, deadline);
  }
  [[nodiscard]] bool has_left(int peer) const noexcept override { return inner_->has_left(peer); }
  Progress mismatched(int peer) noexcept override { return inner_->mismatched(peer); }
  Progress wrong_length(int peer, std::uint64_t sent, std::uint64_t expected) noexcept override {
    return inner_->wrong_length(peer, sent, expected);
  }
  [[nodiscard]] Failure failure() const override { return inner_->failure(); }
  [[nodiscard]] std::string who_is_late() const override { return inner_->who_is_late(); }
  void poison(const Failure& failure) noexcept override { inner_->poison(failure); }

 protected:
  [[nodiscard]] Transport& inner() noexcept { return *inner_; }
  [[nodiscard]] const Transport& inner() const noexcept { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

/// Hides shared memory as well, so that every byte crosses the decorated verbs.
class DecoratedMessages : public Decorated {
 public:
  using Decorated::Decorated;
  [[nodiscard]] Capabilities capabilities() const noexcept final { return {}; }
  Board* board() noexcept final { return nullptr; }
  Arena* arena() noexcept final { return nullptr; }
};

}  // namespace sinew
