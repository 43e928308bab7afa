#include "transport/rendezvous/store_frame.hpp"

#include <fmt/format.h>

#include <cstring>

#include <sinew/error.hpp>
#include "transport/rendezvous/store.hpp"

namespace sinew {
namespace {

constexpr std::size_t kHeaderBytes = 16;

std::uint32_t number(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    value |= std::to_integer<std::uint32_t>(bytes[i]) << (8 * i);
  return value;
}

void put(std::string& text, std::size_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
}

bool is_known(std::uint32_t what) {
  const StoreFrame::What known{static_cast<std::uint8_t>(what)};
  return (known >= StoreFrame::What::set && known <= StoreFrame::What::leave) ||
         (known >= StoreFrame::What::done && known <= StoreFrame::What::refused);
}

}  // namespace

std::string encode(const StoreFrame& frame) {
  std::string text;
  text.reserve(kHeaderBytes + frame.key.size() + frame.value.size());
  put(text, static_cast<std::size_t>(frame.what), 2);
  put(text, frame.key.size(), 2);
  put(text, frame.value.size(), 4);
  put(text, frame.wait_ms, 8);
  return text + frame.key + frame.value;
}

std::span<std::byte> StoreFrameReader::room() noexcept {
  if (at_ < kHeaderBytes) return std::span(header_).subspan(at_);
  return std::as_writable_bytes(std::span(body_)).subspan(at_ - kHeaderBytes);
}

void StoreFrameReader::took(std::size_t bytes) {
  const bool had_header = at_ >= kHeaderBytes;
  at_ += bytes;
  if (had_header || at_ < kHeaderBytes) return;
  const std::span<const std::byte> header(header_);
  const auto what = number(header.first(2)), key = number(header.subspan(2, 2)),
             value = number(header.subspan(4, 4));
  if (!is_known(what) || key > kLongestKey || value > kLongestValue ||
      number(header.subspan(12, 4)) != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("not a frame of the store (kind {}, key of {} bytes, value of {})",
                            what, key, value));
  body_.resize(key + value);
}

bool StoreFrameReader::is_complete() const noexcept {
  return at_ >= kHeaderBytes && at_ == kHeaderBytes + body_.size();
}

StoreFrame StoreFrameReader::take() {
  const std::span<const std::byte> header(header_);
  const auto key = number(header.subspan(2, 2));
  StoreFrame frame{.what = StoreFrame::What{std::to_integer<std::uint8_t>(header[0])},
                   .wait_ms = number(header.subspan(8, 4)),
                   .key = body_.substr(0, key),
                   .value = body_.substr(key)};
  body_.clear();
  at_ = 0;
  return frame;
}

}  // namespace sinew
