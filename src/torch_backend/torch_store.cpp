#include "torch_backend/torch_store.hpp"

#include <algorithm>

#include <sinew/error.hpp>

namespace sinew {
namespace {

std::string name_of(std::string_view key) { return "sinew/" + std::string(key); }

}  // namespace

void TorchStore::set(std::string_view key, std::string_view value) {
  check_entry(key, value);
  try {
    store_->set(name_of(key), std::vector<std::uint8_t>(value.begin(), value.end()));
  } catch (const std::exception& error) {
    throw Error(Errc::system,
                "torch's store cannot take '" + std::string(key) + "': " + error.what());
  }
}

std::string TorchStore::get(std::string_view key, Deadline deadline) {
  const auto begin = Clock::now();
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - begin);
  try {
    store_->wait({name_of(key)}, std::max(most, std::chrono::milliseconds(1)));
    const auto value = store_->get(name_of(key));
    return {value.begin(), value.end()};
  } catch (const std::exception&) {
    throw_absent(key, "torch's store", begin);
  }
}

}  // namespace sinew
