// Little-endian integers in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinew::wire {

// Byte by byte in the source, one move in the binary.
template <class T>
void put(std::byte* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T get(const std::byte* at) noexcept {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(at[i]) << (8 * i)));
  return value;
}

}  // namespace sinew::wire
