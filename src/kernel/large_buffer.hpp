// Memory for whole gradients: on huge pages where the system gives them, because a pass over 100 MB
// in small pages waits for address translation.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

namespace sinew {

template <class T>
class LargeBuffer {
 public:
  LargeBuffer() = default;
  /// Not initialised.
  explicit LargeBuffer(std::size_t elements) : elements_(elements) {
    constexpr std::size_t kCacheLine = 64, kHugePage = std::size_t{2} << 20;
    constexpr std::size_t kMost = (~std::size_t{0} >> 1) / sizeof(T);
    if (elements > kMost) throw std::bad_alloc();  // before its bytes wrap round
    const bool huge = elements * sizeof(T) >= kHugePage;
    const auto alignment = huge ? kHugePage : kCacheLine;
    const auto bytes = (elements * sizeof(T) + alignment) / alignment * alignment;
    memory_.reset(static_cast<T*>(std::aligned_alloc(alignment, bytes)));
    if (memory_ == nullptr) throw std::bad_alloc();
    if (huge) ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);  // a hint; without it, only slower
  }
  [[nodiscard]] T* data() const noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return elements_; }
  [[nodiscard]] std::span<T> all() const noexcept { return {memory_.get(), elements_}; }
  /// Makes room for so many; what was there is gone if it has to grow.
  void reserve(std::size_t elements) {
    if (elements > elements_) *this = LargeBuffer(elements + elements / 4);
  }
  /// The same where sizes vary from step to step: there is room for twice as many then, with pages
  /// behind it, because one that comes later costs a millisecond of some step.
  void grow(std::size_t elements) {
    if (elements <= elements_) return;
    *this = LargeBuffer(elements + std::min(elements, ~elements));  // too many: refused
#if defined(MADV_POPULATE_WRITE)
    constexpr std::uintptr_t kPage = 4096;  // at least
    const auto begin = (reinterpret_cast<std::uintptr_t>(data()) + kPage - 1) / kPage * kPage;
    const auto end = reinterpret_cast<std::uintptr_t>(data() + elements_);
    if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#endif
  }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  std::size_t elements_ = 0;
};

}  // namespace sinew
