#include "transport/traced.hpp"

#include <utility>

namespace sinew {

TracedTransport::TracedTransport(std::unique_ptr<Transport> inner, Observer& observer, Now clock)
    : Decorated(std::move(inner)),
      observer_(observer),
      now_(clock),
      begun_(2 * static_cast<std::size_t>(size()) * kChannels) {}

template <class Verb>
Progress TracedTransport::traced(EventKind kind, const Transfer& transfer, std::size_t bytes,
                                 Verb verb) noexcept {
  const auto direction = kind == EventKind::send ? 0U : static_cast<unsigned>(size());
  auto& begun =
      begun_[(direction + static_cast<unsigned>(transfer.peer)) * kChannels + transfer.channel];
  if (begun == 0) begun = now_ns();
  const auto progress = verb();
  if (progress != Progress::done) return progress;
  Event event;
  event.kind = kind;
  event.channel = transfer.channel;
  event.sequence = transfer.tag.sequence;
  event.peer = transfer.peer;
  event.bytes = bytes;
  event.begin_ns = std::exchange(begun, 0);
  event.end_ns = now_ns();
  observer_.on_event(event);
  return progress;
}

Progress TracedTransport::send(Transfer& transfer, std::span<const std::byte> data) noexcept {
  return traced(EventKind::send, transfer, data.size(),
                [&] { return inner().send(transfer, data); });
}

Progress TracedTransport::recv(Transfer& transfer, std::span<std::byte> data) noexcept {
  return traced(EventKind::recv, transfer, data.size(),
                [&] { return inner().recv(transfer, data); });
}

Progress TracedTransport::recv_reduce(Transfer& transfer, std::span<std::byte> data,
                                      const Reducer& reducer) noexcept {
  return traced(EventKind::recv, transfer, data.size(),
                [&] { return inner().recv_reduce(transfer, data, reducer); });
}

std::unique_ptr<Transport> TracedTransport::subset(std::span<const int> members,
                                                   std::string_view label, Deadline deadline) {
  return std::make_unique<TracedTransport>(inner().subset(members, label, deadline), observer_,
                                           now_);
}

}  // namespace sinew
