#include "transport/rendezvous/pmix.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr auto kKey = "sinew-meeting";

// The few parts of PMIx's interface that are used here; equal since its version 2.
using Status = int;
constexpr Status kSuccess = 0;
constexpr std::uint16_t kString = 3;
constexpr std::uint8_t kGlobal = 3;
struct Process {
  std::array<char, 256> job;
  std::uint32_t rank;
};
struct Value {
  std::uint16_t type = kString;
  char* text = nullptr;
  std::array<char, 64> rest{};  // more than the largest of its other members
};
struct Info;
using Done = void (*)(Status, void*);
using Found = void (*)(Status, Value*, void*);

struct Library {
  Status (*init)(Process*, Info*, std::size_t);
  Status (*finalize)(const Info*, std::size_t);
  Status (*put)(std::uint8_t, const char*, Value*);
  Status (*commit)();
  Status (*fence_nb)(const Process*, std::size_t, const Info*, std::size_t, Done, void*);
  Status (*get_nb)(const Process*, const char*, const Info*, std::size_t, Found, void*);
  const char* (*error_string)(Status);
};

[[noreturn]] void fail(std::string_view what) {
  throw Error(Errc::system, fmt::format("PMIx: {}; set SINEW_RENDEZVOUS and SINEW_TOKEN to do "
                                        "without it",
                                        what));
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) fail(fmt::format("the library has no {}", name));
}

// Stays loaded: it may have a thread, and MPI may use the same one.
Library load() {
  void* library = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) fail(::dlerror());
  Library functions{};
  find(library, "PMIx_Init", functions.init);
  find(library, "PMIx_Finalize", functions.finalize);
  find(library, "PMIx_Put", functions.put);
  find(library, "PMIx_Commit", functions.commit);
  find(library, "PMIx_Fence_nb", functions.fence_nb);
  find(library, "PMIx_Get_nb", functions.get_nb);
  find(library, "PMIx_Error_string", functions.error_string);
  return functions;
}

/// An answer that another thread brings, perhaps after we have given up on it.
class Answer {
 public:
  void bring(Status status, const Value* value) {
    const std::scoped_lock lock(mutex_);
    status_ = status;
    if (status == kSuccess && value != nullptr && value->type == kString && value->text != nullptr)
      text_ = value->text;
    brought_.notify_all();
  }
  std::string wait(const Library& pmix, std::string_view what, Deadline deadline) {
    std::unique_lock lock(mutex_);
    if (!brought_.wait_until(lock, deadline, [&] { return status_.has_value(); }))
      throw Error(Errc::timeout,
                  fmt::format("PMIx: {} did not end in time: not all ranks have called "
                              "sinew::connect()",
                              what));
    if (*status_ != kSuccess) fail(fmt::format("{}: {}", what, pmix.error_string(*status_)));
    return text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable brought_;
  std::optional<Status> status_;
  std::string text_;
};
using SharedAnswer = std::shared_ptr<Answer>;  // one of them is the other thread's, until it calls

void bring_done(Status status, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  (*answer)->bring(status, nullptr);
}

void bring_value(Status status, Value* value, void* data) {
  const std::unique_ptr<SharedAnswer> answer(static_cast<SharedAnswer*>(data));
  (*answer)->bring(status, value);
}

void check(const Library& pmix, std::string_view what, Status status) {
  if (status != kSuccess) fail(fmt::format("{}: {}", what, pmix.error_string(status)));
}

std::string share(const Library& pmix, Process self, int rank, std::string_view value,
                  Deadline deadline) {
  if (rank == 0) {
    std::string text(value);
    Value entry;
    entry.text = text.data();
    check(pmix, "put", pmix.put(kGlobal, kKey, &entry));
    check(pmix, "commit", pmix.commit());
  }
  const auto all = std::make_shared<Answer>(), found = std::make_shared<Answer>();
  check(pmix, "fence", pmix.fence_nb(nullptr, 0, nullptr, 0, bring_done, new SharedAnswer(all)));
  all->wait(pmix, "fence", deadline);
  self.rank = 0;
  check(pmix, "get", pmix.get_nb(&self, kKey, nullptr, 0, bring_value, new SharedAnswer(found)));
  return found->wait(pmix, "get", deadline);
}

}  // namespace

std::string share_by_pmix(int rank, std::string_view value, Deadline deadline) {
  const auto pmix = load();
  Process self{};
  check(pmix, "init", pmix.init(&self, nullptr, 0));
  std::string shared;
  try {
    shared = share(pmix, self, rank, value, deadline);
  } catch (...) {
    pmix.finalize(nullptr, 0);
    throw;
  }
  // Without it the launcher takes the end of the process for a crash.
  check(pmix, "finalize", pmix.finalize(nullptr, 0));
  return shared;
}

}  // namespace sinew
