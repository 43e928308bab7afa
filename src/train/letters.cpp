#include "train/letters.hpp"

#include <fmt/format.h>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::uint32_t kTag = 0x1E77E25;

}  // namespace

void Letters::send(std::vector<std::byte> frame) {
  finish_sending();
  out_ = std::move(frame);
  out_length_ = out_.size();
  bytes_sent_ += sizeof out_length_ + out_.size();
  sending_.push_back(communicator_.isend(
      std::as_bytes(std::span<const std::uint64_t>(&out_length_, 1)), peer_, kTag));
  sending_.push_back(communicator_.isend(std::span<const std::byte>(out_), peer_, kTag));
}

void Letters::finish_sending() {
  communicator_.wait_all(sending_);
  sending_.clear();
}

void Letters::expect_length() {
  receiving_ = communicator_.irecv(std::as_writable_bytes(std::span<std::uint64_t>(&in_length_, 1)),
                                   peer_, kTag);
  stage_ = Stage::length;
}

void Letters::expect_body() {
  if (in_length_ == 0 || in_length_ > most_bytes_)
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: rank {} announces a frame of {} bytes; up to {} are expected",
                            communicator_.rank(), peer_, in_length_, most_bytes_),
                {.rank = communicator_.rank(), .peer = peer_});
  in_.resize(in_length_);
  receiving_ = communicator_.irecv(std::span<std::byte>(in_), peer_, kTag);
  stage_ = Stage::body;
}

bool Letters::poll() {
  if (stage_ == Stage::idle) expect_length();
  if (!communicator_.test(receiving_)) return false;
  if (stage_ == Stage::length) {
    expect_body();
    if (!communicator_.test(receiving_)) return false;
  }
  stage_ = Stage::idle;
  return true;
}

std::vector<std::byte>& Letters::receive() {
  if (stage_ == Stage::idle) expect_length();
  if (stage_ == Stage::length) {
    communicator_.wait(receiving_);
    expect_body();
  }
  communicator_.wait(receiving_);
  stage_ = Stage::idle;
  return in_;
}

}  // namespace sinew
