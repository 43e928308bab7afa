#include "transport/time_slice.hpp"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sinew {
namespace {

constexpr std::uint64_t kShortNs = 100'000;  // the shortest there is

bool read_attributes(pid_t thread, sched_attr& attributes) noexcept {
  return syscall(SYS_sched_getattr, thread, &attributes, sizeof(attributes), 0) == 0 &&
         attributes.sched_policy == SCHED_NORMAL;
}

}  // namespace

void TimeSlice::shorten() noexcept {
  if (thread_ != 0) return;
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  sched_attr attributes{};
  if (!read_attributes(self, attributes)) return;
  usual_ns_ = attributes.sched_runtime;
  attributes.sched_runtime = kShortNs;
  if (syscall(SYS_sched_setattr, self, &attributes, 0) == 0) thread_ = self;
}

std::uint64_t TimeSlice::current_ns() noexcept {
  sched_attr attributes{};
  return read_attributes(0, attributes) ? attributes.sched_runtime : 0;
}

void TimeSlice::set_usual() noexcept {
  sched_attr attributes{};
  if (read_attributes(thread_, attributes)) {
    attributes.sched_runtime = usual_ns_;
    syscall(SYS_sched_setattr, thread_, &attributes, 0);
  }
  thread_ = 0;
}

}  // namespace sinew
