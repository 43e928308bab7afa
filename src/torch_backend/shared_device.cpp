#include "torch_backend/shared_device.hpp"

#include <ATen/ATen.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace sinew {
namespace {

// Below, copies to the host and back are shorter than waiting until eight processes have had their
// turns on the device: 2.3 ms, where copies take 0.5 ms for each MiB.
constexpr std::size_t kLeastSharedBytes = std::size_t{4} << 20;
// Longer tensors are added up piece by piece.
constexpr std::size_t kMostPlaceBytes = std::size_t{64} << 20;

}  // namespace

// Others may still read what is ours; what we read ourselves must be over.
SharedDevice::~SharedDevice() {
  if (own_.data == nullptr) return;
  try {
    const c10::DeviceGuard on(device_);
    SideStream(device_).synchronize();  // this thread may never have used it
    const auto& driver = *DeviceDriver::find();
    driver.synchronize();
    unmap();
    driver.leave(std::move(own_));
  } catch (const std::exception&) {
    // The device is lost, and its memory with it.
  }
}

bool SharedDevice::suits(const at::Tensor& tensor) const {
  return known_.load() != Known::not_shared && tensor.is_cuda() && !tensor.is_complex() &&
         tensor.scalar_type() != at::kBool && tensor.nbytes() >= kLeastSharedBytes;
}

void SharedDevice::Together::barrier() const {
  communicator.run({.collective = Collective::barrier, .options = options});
}

void SharedDevice::Together::allgather(const void* mine, void* all, std::size_t bytes) const {
  communicator.run({.collective = Collective::allgather,
                    .dtype = DType::u8,
                    .input = mine,
                    .output = all,
                    .count = bytes,
                    .options = options});
}

bool SharedDevice::Together::all(bool mine) const {
  const auto word = static_cast<std::uint8_t>(mine ? 1 : 0);
  std::vector<std::uint8_t> words(static_cast<std::size_t>(communicator.size()));
  allgather(&word, words.data(), sizeof word);
  return std::find(words.begin(), words.end(), 0) == words.end();
}

bool SharedDevice::sum(Communicator& communicator, const at::Tensor& tensor, const SideStream& side,
                       std::chrono::nanoseconds timeout) {
  const at::NoGradGuard no_grad;
  const c10::StreamGuard on(side.stream());
  const auto what = c10::str("device sum of ", tensor.numel(), " ", tensor.scalar_type());
  const Together together{communicator,
                          {.tag = XXH3_64bits(what.data(), what.size()), .timeout = timeout}};
  auto flat = tensor.detach().contiguous().view({-1});  // a copy where the tensor has gaps
  const auto bytes = std::min(flat.nbytes(), kMostPlaceBytes);
  if (!is_shared(together, side) || !reserve(together, bytes, side)) {
    known_ = Known::not_shared;
    return false;
  }
  const auto most = static_cast<std::int64_t>(room_ / flat.element_size());
  for (std::int64_t first = 0; first < flat.numel(); first += most)
    if (!sum_piece(together, flat.narrow(0, first, std::min(most, flat.numel() - first)), side)) {
      known_ = Known::not_shared;
      return false;  // of the first piece only: none is on another device than the first
    }
  if (!tensor.is_contiguous()) tensor.detach().copy_(flat.view(tensor.sizes()), true);
  ++sums_;
  return true;
}

bool SharedDevice::is_shared(const Together& together, const SideStream& side) {
  if (known_.load() != Known::nothing) return known_.load() == Known::shared;
  struct Card {
    DeviceDriver::Identity identity{};
    std::int64_t process = 0;
    std::int64_t usable = 0;
  };
  Card mine;
  side.synchronize();  // now the device is this thread's, for the driver too
  const auto* const driver = offers_ ? DeviceDriver::find() : nullptr;
  if (const auto identity = driver != nullptr ? driver->identity() : std::nullopt)
    mine = {*identity, ::getpid(), 1};
  std::vector<Card> all(static_cast<std::size_t>(together.communicator.size()));
  together.allgather(&mine, all.data(), sizeof mine);
  const bool same = std::all_of(all.begin(), all.end(), [&](const Card& card) {
    return card.usable != 0 && card.identity == all.front().identity;
  });
  for (const auto& card : all) processes_.push_back(card.process);
  known_ = same && all.size() > 1 ? Known::shared : Known::not_shared;
  return known_.load() == Known::shared;
}

// All ranks ask for the same, so that all find it too small at the same call.
bool SharedDevice::reserve(const Together& together, std::size_t bytes, const SideStream& side) {
  if (bytes <= room_) return true;
  const auto& driver = *DeviceDriver::find();
  side.synchronize();  // as in is_shared(): another thread may have come that far
  driver.synchronize();
  together.barrier();  // nobody reads any more, neither here nor what an earlier group has left
  unmap();
  together.barrier();
  driver.free(std::exchange(own_, {}));
  const auto room = std::bit_ceil(bytes);
  own_ = driver.allocate(2 * room, processes_);
  const auto ranks = processes_.size();
  const auto me = static_cast<std::size_t>(together.communicator.rank());
  struct Offer {
    DeviceHandle handle{};
    std::uint8_t made = 0;
  };
  const Offer mine{own_.handle, static_cast<std::uint8_t>(own_.data != nullptr ? 1 : 0)};
  std::vector<Offer> offers(ranks);
  together.allgather(&mine, offers.data(), sizeof mine);
  places_.assign(ranks, nullptr);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    if (offers[rank].made != 0)
      places_[rank] = rank == me ? own_.data : driver.map(offers[rank].handle);
  const bool found = std::find(places_.begin(), places_.end(), nullptr) == places_.end();
  if (!together.all(found)) {
    unmap();
    together.barrier();
    driver.free(std::exchange(own_, {}));
    return false;
  }
  room_ = room;
  return true;
}

void SharedDevice::unmap() {
  for (auto* const place : places_)
    if (place != own_.data) DeviceDriver::find()->unmap(place);
  places_.clear();
  room_ = 0;
}

// False: some rank has its tensor on another device than before.
bool SharedDevice::sum_piece(const Together& together, at::Tensor piece, const SideStream& side) {
  const auto offset = (turn_++ % 2) * room_;
  const auto place_of = [&](std::size_t rank) {
    return at::from_blob(places_[rank] + offset, piece.sizes(), piece.options());
  };
  const auto me = static_cast<std::size_t>(together.communicator.rank());
  const bool is_here = piece.device() == device_;
  if (is_here) place_of(me).copy_(piece, /*non_blocking=*/true);
  side.synchronize();
  if (!together.all(is_here)) return false;
  if (me == 0) {
    auto total = place_of(0);
    for (std::size_t rank = 1; rank < places_.size(); ++rank) total.add_(place_of(rank));
    side.synchronize();
  }
  together.barrier();
  piece.copy_(place_of(0), /*non_blocking=*/true);
  return true;
}

}  // namespace sinew
