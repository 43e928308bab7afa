#include "train/espeak.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include <sinew/error.hpp>
#include "base/counter_random.hpp"
#include "train/sound.hpp"
#include "train/spectrogram.hpp"
#include "transport/cores.hpp"

extern char** environ;

namespace sinew {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr auto kBetweenLooks = std::chrono::milliseconds(2);
constexpr auto kOneUtterance = std::chrono::seconds(60);
constexpr auto kAll = std::chrono::minutes(30);
enum Stream : std::uint64_t { kText = 31, kVoice };

constexpr std::string_view kParts[] = {"train", "test"};
constexpr std::string_view kVoices[] = {"en-gb",  "en-us",          "en-gb-scotland", "en-gb-x-rp",
                                        "en-029", "en-gb-x-gbclan", "en-gb-x-gbcwmd", "en-us-nyc"};
constexpr std::string_view kVariants[] = {"", "+m1", "+m3", "+m5", "+m7", "+f1", "+f2", "+f4"};
constexpr std::string_view kWords[] = {
    "ZERO",  "ONE",   "TWO",    "THREE",   "FOUR",  "FIVE",  "SIX",    "SEVEN",  "EIGHT",
    "NINE",  "TEN",   "TWELVE", "TWENTY",  "FORTY", "FIFTY", "SIXTY",  "NINETY", "HUNDRED",
    "ENTER", "ERASE", "GO",     "HELP",    "NO",    "YES",   "RUBOUT", "REPEAT", "START",
    "STOP",  "AREA",  "CODE",   "JANUARY", "JUNE",  "MARCH", "OCTOBER"};

std::uint64_t key_of(Stream stream, std::string_view part, std::size_t number, std::uint64_t seed) {
  return random_key(seed, stream, 2 * number + (part == kParts[0] ? 0 : 1));
}
template <std::size_t Size>
std::string_view choose(const std::string_view (&list)[Size], std::uint64_t bits) {
  return list[bits % Size];
}

// Waits until the program has ended; true when it says that all went well.
bool succeeded(pid_t program) {
  const auto until = Clock::now() + kOneUtterance;
  int status = 0;
  while (::waitpid(program, &status, WNOHANG) == 0) {
    if (Clock::now() > until) {
      ::kill(program, SIGKILL);
      ::waitpid(program, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void speak(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t program = 0;
  const int refused =
      ::posix_spawnp(&program, arguments[0], nullptr, nullptr, arguments.data(), environ);
  if (refused == ENOENT)
    throw Error(Errc::system,
                "espeak-ng, which speaks, is not there: apt-get install espeak-ng, or use --data "
                "tones");
  if (refused != 0 || !succeeded(program))
    throw Error(Errc::system, fmt::format("espeak-ng could not say \"{}\" with voice {}",
                                          words.back(), words[2]));
}

fs::path sound_path(const fs::path& folder, std::string_view part, std::size_t number) {
  return folder / "wav" / part / fmt::format("{}-{:05}.wav", part, number);
}

void make_one(const fs::path& folder, std::string_view part, std::size_t number,
              std::uint64_t seed) {
  const auto path = sound_path(folder, part, number);
  if (fs::exists(path)) return;
  auto text = spoken_text(part, number, seed);
  // A pause after each letter, or it reads them as a word.
  if (text.size() > 1 && text[1] == ' ')
    for (std::size_t at = 0; (at = text.find(' ', at)) != std::string::npos; at += 2)
      text.replace(at, 1, ", ");
  const auto key = key_of(kVoice, part, number, seed);
  const auto raw = path.string() + ".raw";
  speak({"espeak-ng", "-v",
         fmt::format("{}{}", choose(kVoices, random_bits(key, 0)),
                     choose(kVariants, random_bits(key, 1))),
         "-s", std::to_string(120 + random_bits(key, 2) % 80), "-p",
         std::to_string(30 + random_bits(key, 3) % 40), "-w", raw, text});
  write_wav(path, resample(read_sound(raw), kSpeechRate));
  fs::remove(raw);
}

void write_list(const fs::path& folder, std::string_view part, std::size_t count,
                std::uint64_t seed) {
  std::string lines, ids;
  for (std::size_t i = 0; i < count; ++i) {
    lines += fmt::format("<s> {} </s> ({}-{:05})\n", spoken_text(part, i, seed), part, i);
    ids += fmt::format("{0}/{0}-{1:05}\n", part, i);
  }
  const auto write = [&](std::string_view kind, const std::string& text) {
    const auto path = folder / "etc" / fmt::format("speech_{}.{}", part, kind);
    const auto beside = path.string() + ".part";
    std::ofstream file(beside);
    file << text;
    file.close();
    if (!file) throw Error(Errc::system, fmt::format("cannot write '{}'", beside));
    fs::rename(beside, path);
  };
  write("fileids", ids);
  write("transcription", lines);  // last: it says that all is there
}

std::size_t listed(const fs::path& folder, std::string_view part) {
  std::ifstream lines(folder / "etc" / fmt::format("speech_{}.transcription", part));
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  return count;
}

// Runs work(0 .. count - 1) on the cores there are; throws the first failure.
void on_all_cores(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;  // relaxed: it only deals numbers out
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    for (std::size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;) try {
        work(i);
      } catch (...) {
        next.store(count, std::memory_order_relaxed);
        const std::scoped_lock lock(mutex);
        failure = std::current_exception();
      }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < allowed_cores(); ++i) threads.emplace_back(run);
  run();
  for (auto& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

/// Held by the one process that works in the folder.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : file_(::open((folder / "lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644)) {
    if (file_ < 0)
      throw Error(Errc::system, fmt::format("cannot write into '{}'", folder.string()));
    const auto until = Clock::now() + kAll;
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (Clock::now() > until) {
        ::close(file_);
        throw Error(Errc::timeout, fmt::format("another process has been making speech in '{}' for "
                                               "half an hour",
                                               folder.string()));
      }
      std::this_thread::sleep_for(10 * kBetweenLooks);
    }
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock() { ::close(file_); }

 private:
  int file_;
};

}  // namespace

std::string spoken_text(std::string_view part, std::size_t number, std::uint64_t seed) {
  const auto key = key_of(kText, part, number, seed);
  std::string text;
  const bool spells = random_bits(key, 0) % 5 < 3;
  const auto count = spells ? 3 + random_bits(key, 1) % 6 : 1 + random_bits(key, 1) % 6;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto bits = random_bits(key, 2 + i);
    if (i > 0) text += ' ';
    if (spells)
      text += static_cast<char>('A' + bits % 26);
    else
      text += choose(kWords, bits);
  }
  return text;
}

void make_speech(const fs::path& folder, std::size_t train, std::size_t test, std::uint64_t seed,
                 const std::function<void(std::string_view)>& say) {
  std::error_code failed;
  for (const auto part : kParts) fs::create_directories(folder / "wav" / part, failed);
  fs::create_directories(folder / "etc", failed);
  const FolderLock lock(folder);
  const std::size_t wanted[] = {train, test};
  for (std::size_t i = 0; i < std::size(kParts); ++i) {
    const auto part = kParts[i];
    const auto there = listed(folder, part);
    if (there >= wanted[i]) continue;
    if (say)
      say(fmt::format("espeak-ng speaks {} utterances to {} with, into {}", wanted[i] - there, part,
                      folder.string()));
    on_all_cores(wanted[i] - there,
                 [&](std::size_t at) { make_one(folder, part, there + at, seed); });
    write_list(folder, part, wanted[i], seed);
  }
}

}  // namespace sinew
