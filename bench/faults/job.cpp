#include "job.hpp"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string_view>
#include <vector>

namespace sinew::faults {
namespace {

constexpr int kOdd = 1;  // the rank that does something else than the others

std::int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

class Diary {
 public:
  Diary(const std::string& folder, const std::string& name)
      : file_(::open((folder + "/" + name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                     0600)) {}
  Diary(const Diary&) = delete;
  Diary& operator=(const Diary&) = delete;
  ~Diary() { ::close(file_); }
  void write(const std::string& event, std::string text = "") const {
    std::replace(text.begin(), text.end(), '\n', ' ');
    const auto line = std::to_string(now_ns()) + " " + event + " " + text + "\n";
    (void)!::write(file_, line.data(), line.size());
  }

 private:
  int file_;
};

using Data = std::vector<float>;

bool all_are(const float* data, std::size_t elements, float value) {
  return std::all_of(data, data + elements, [=](float each) { return each == value; });
}

float mine(const Job& job) { return static_cast<float>(job.rank() + 1); }
float sum(const Job& job) { return static_cast<float>(job.size() * (job.size() + 1)) / 2; }

/// Each returns whether the data is what the rank's own calls promise.
bool other_operation(Job& job, Data& data, bool odd) {
  if (odd)
    job.broadcast(data.data(), data.size(), 0);
  else
    job.allreduce(data.data(), data.size(), Job::Op::sum, 0);
  return all_are(data.data(), data.size(), odd ? 1 : sum(job));
}

bool other_count(Job& job, Data& data, bool odd) {
  const auto elements = odd ? data.size() / 2 : data.size();
  job.allreduce(data.data(), elements, Job::Op::sum, 0);
  return all_are(data.data(), elements, sum(job));
}

bool other_type(Job& job, Data& data, bool odd) {
  if (!odd) return other_count(job, data, false);
  std::vector<std::int32_t> integers(data.size(), job.rank() + 1);
  job.allreduce(integers.data(), integers.size());
  const auto right = static_cast<std::int32_t>(sum(job));
  return std::all_of(integers.begin(), integers.end(), [=](auto each) { return each == right; });
}

bool other_reduction(Job& job, Data& data, bool odd) {
  job.allreduce(data.data(), data.size(), odd ? Job::Op::max : Job::Op::sum, 0);
  return all_are(data.data(), data.size(), odd ? static_cast<float>(job.size()) : sum(job));
}

bool other_root(Job& job, Data& data, bool odd) {
  job.broadcast(data.data(), data.size(), odd ? 1 : 0);
  return all_are(data.data(), data.size(), odd ? 2 : 1);
}

bool other_order(Job& job, Data& first, Data& second, bool odd) {
  const std::array<Data*, 2> order{odd ? &second : &first, odd ? &first : &second};
  for (Data* each : order)
    job.allreduce(each->data(), each->size(), Job::Op::sum, each == &first ? 1 : 2);
  return all_are(first.data(), first.size(), sum(job)) &&
         all_are(second.data(), second.size(), 100 * sum(job));
}

bool other_order_and_sizes(Job& job, Data& data, bool odd) {
  Data second(data.size() / 4, 100 * mine(job));
  return other_order(job, data, second, odd);
}

bool other_order_of_equals(Job& job, Data& data, bool odd) {
  Data second(data.size(), 100 * mine(job));
  return other_order(job, data, second, odd);
}

struct Case {
  std::string_view name;
  bool (*call)(Job&, Data&, bool odd);
};
constexpr Case kCases[] = {
    {"operation", other_operation},
    {"count", other_count},
    {"type", other_type},
    {"reduction", other_reduction},
    {"root", other_root},
    {"order-sizes", other_order_and_sizes},
    {"order-equal", other_order_of_equals},
};

bool call_rightly(Job& job, Data& data) {
  std::fill(data.begin(), data.end(), mine(job));
  return other_count(job, data, false);
}

[[noreturn]] void loop(Job& job, Data& data, const Diary& diary) {
  for (auto beat = now_ns();;) {
    if (!call_rightly(job, data)) diary.write("wrong");
    if (now_ns() - beat < 50'000'000) continue;
    beat = now_ns();
    diary.write("beat");
  }
}

void play_case(Job& job, const Orders& orders, const Diary& diary) {
  Data data(orders.elements);
  if (!call_rightly(job, data)) diary.write("wrong", "before anything was done to it");
  diary.write("ready");
  if (orders.what == "loop") loop(job, data, diary);
  for (const auto& each : kCases) {
    if (each.name != orders.what) continue;
    std::fill(data.begin(), data.end(), mine(job));
    ::usleep(100'000);  // all are through with the call before
    diary.write("calls");
    diary.write(each.call(job, data, job.rank() == kOdd) ? "right" : "wrong");
    // Whoever has not noticed may notice in the next call, which is the same for all.
    diary.write(call_rightly(job, data) ? "next-right" : "next-wrong");
  }
}

}  // namespace

Orders Orders::read(int argc, char** argv) {
  const char* folder = std::getenv("FAULTS_FOLDER");
  if (argc != 4 || folder == nullptr) {
    std::fprintf(stderr, "usage: FAULTS_FOLDER=... %s CASE ELEMENTS DEADLINE_MS\n", argv[0]);
    std::exit(2);
  }
  return {argv[1], static_cast<std::size_t>(std::atol(argv[2])), std::atoi(argv[3]), folder};
}

int play(Job& job, const Orders& orders) {
  const Diary diary(orders.folder, std::to_string(job.rank()));
  diary.write("pid", std::to_string(::getpid()));
  try {
    play_case(job, orders, diary);
  } catch (const std::exception& error) {
    diary.write("error", error.what());
    return 1;
  }
  return 0;
}

int could_not_join(const Orders& orders, const std::string& why) {
  Diary(orders.folder, "join-" + std::to_string(::getpid())).write("error", why);
  return 1;
}

}  // namespace sinew::faults
