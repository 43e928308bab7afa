#include "support/shared_store.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>

#include <sinew/error.hpp>

namespace sinew::test {
namespace {

constexpr std::size_t kKey = 128, kValue = 512, kEntries = 16384;

struct Entry {
  std::atomic<std::uint32_t> ready;  // 1: key and value are there
  char key[kKey];
  char value[kValue];
};

}  // namespace

// Appended to and never changed, so that a rank may be killed at any time.
struct SharedStore::Table {
  std::atomic<std::uint32_t> count;
  Entry entries[kEntries];

  [[nodiscard]] const Entry* find(std::string_view key) const {
    const auto known = std::min<std::size_t>(count.load(), kEntries);
    for (std::size_t i = 0; i < known; ++i)
      // acquire pairs with the release in set()
      if (entries[i].ready.load(std::memory_order_acquire) == 1 && key == entries[i].key)
        return &entries[i];
    return nullptr;
  }
};

SharedStore::SharedStore() {
  void* room = mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  table_ = static_cast<Table*>(room);  // zero-filled, which is the initial value of all in it
}

SharedStore::~SharedStore() { munmap(table_, sizeof(Table)); }

void SharedStore::set(std::string_view key, std::string_view value) {
  if (const auto* old = table_->find(key); old != nullptr && value != old->value)
    throw Error(Errc::invalid_argument,
                fmt::format("{} is '{}' already, not '{}'", key, old->value, value));
  const auto at = table_->count.fetch_add(1);
  if (at >= kEntries || key.size() >= kKey || value.size() >= kValue)
    throw std::runtime_error("the store of the tests is too small");
  auto& entry = table_->entries[at];
  std::memcpy(entry.key, key.data(), key.size());
  std::memcpy(entry.value, value.data(), value.size());
  entry.ready.store(1, std::memory_order_release);
}

std::string SharedStore::get(std::string_view key, Deadline deadline) {
  while (true) {
    if (const auto* entry = table_->find(key)) return entry->value;
    if (Clock::now() >= deadline)
      throw Error(Errc::timeout, fmt::format("nobody has set {} in the store of the tests", key));
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace sinew::test
