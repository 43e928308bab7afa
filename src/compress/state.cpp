#include <fmt/format.h>

#include <sinew/error.hpp>
#include <sinew/scheme.hpp>

namespace sinew {

void State::put(const std::string& name, DType dtype, std::span<const std::byte> bytes) {
  arrays_.insert_or_assign(name, Array{dtype, {bytes.begin(), bytes.end()}});
}

std::span<const std::byte> State::find(std::string_view name, DType dtype) const {
  const auto at = arrays_.find(name);
  if (at == arrays_.end()) return {};
  const auto& array = at->second;
  if (array.dtype != dtype || array.bytes.size() % size_of(dtype) != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("'{}' was saved as {} bytes of {}, not of {}", name, array.bytes.size(),
                            sinew::name(array.dtype), sinew::name(dtype)));
  return array.bytes;
}

}  // namespace sinew
