// Somebody between two ranks, for tests: passes everything on, listens, and may flip one bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "transport/rendezvous/store.hpp"
#include "transport/tcp/mesh.hpp"

namespace sinew::test {

/// Which bit to flip of what rank 1 sends to rank 0.
struct Flip {
  std::size_t connection = 0;            // counted in the order they were made
  std::uint64_t at = ~std::uint64_t{0};  // byte of it; the default is beyond all
  int bit = 0;
};

class Meddler {
 public:
  /// `secret`: what to listen for.
  Meddler(tcp::Address behind, const Flip& flip, std::string secret);
  ~Meddler();
  [[nodiscard]] std::string address() const { return tcp::local_address(listener_).text(); }
  [[nodiscard]] bool has_meddled() const { return meddled_; }
  [[nodiscard]] bool has_overheard() const { return overheard_; }

 private:
  struct Pair {
    tcp::Socket outside, inside;
    std::uint64_t passed = 0;  // bytes to the inside
    std::string last;          // of them, as many as the secret may begin in
    bool open = true;
  };
  void run();
  void pass(Pair& pair, bool inward, bool meddles);
  void listen_in(Pair& pair, std::string_view bytes);

  tcp::Address behind_;
  tcp::Socket listener_;
  Flip flip_;
  std::string secret_;
  std::atomic<bool> stop_ = false, meddled_ = false, overheard_ = false;
  std::thread thread_;
};

/// Sends rank 1 to a meddler instead of rank 0.
class DetourStore final : public Store {
 public:
  DetourStore(std::shared_ptr<Store> inner, const Flip& flip, std::string secret = "\1never")
      : inner_(std::move(inner)), flip_(flip), secret_(std::move(secret)) {}
  void set(std::string_view key, std::string_view value) override { inner_->set(key, value); }
  std::string get(std::string_view key, Deadline deadline) override;
  [[nodiscard]] bool has_meddled() const { return meddler_ && meddler_->has_meddled(); }
  [[nodiscard]] bool has_overheard() const { return meddler_ && meddler_->has_overheard(); }

 private:
  std::shared_ptr<Store> inner_;
  Flip flip_;
  std::string secret_;
  std::unique_ptr<Meddler> meddler_;
};

}  // namespace sinew::test
