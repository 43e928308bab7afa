#include "torch_backend/device_memory.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <mutex>
#include <vector>

namespace sinew {

/// As the driver's own header declares them; 0 is success.
struct DeviceDriver::Functions {
  using Pointer = unsigned long long;
  struct Handle {
    DeviceHandle bytes;
  };
  struct Uuid {
    Identity bytes;
  };
  int (*current_device)(int*) = nullptr;
  int (*uuid_of)(Uuid*, int) = nullptr;
  int (*synchronize)() = nullptr;
  int (*allocate)(Pointer*, std::size_t) = nullptr;
  int (*free)(Pointer) = nullptr;
  int (*handle_of)(Handle*, Pointer) = nullptr;
  int (*open)(Pointer*, Handle, unsigned) = nullptr;
  int (*close)(Pointer) = nullptr;

  [[nodiscard]] static std::byte* to_memory(Pointer pointer) noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(pointer));
  }
  [[nodiscard]] static Pointer to_pointer(const std::byte* memory) noexcept {
    return static_cast<Pointer>(reinterpret_cast<std::uintptr_t>(memory));
  }
  bool load() noexcept {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto take = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return take(current_device, "cuCtxGetDevice") && take(uuid_of, "cuDeviceGetUuid") &&
           take(synchronize, "cuCtxSynchronize") && take(allocate, "cuMemAlloc_v2") &&
           take(free, "cuMemFree_v2") && take(handle_of, "cuIpcGetMemHandle") &&
           take(open, "cuIpcOpenMemHandle_v2") && take(close, "cuIpcCloseMemHandle");
  }
};

namespace {

// What groups that are gone have left.
struct LeftPieces {
  std::mutex mutex;
  std::vector<std::pair<int, DeviceDriver::Piece>> all;  // with their device
};
LeftPieces& left_pieces() {
  static LeftPieces pieces;
  return pieces;
}

}  // namespace

const DeviceDriver* DeviceDriver::find() noexcept {
  static Functions functions;
  static const bool found = functions.load();
  static const DeviceDriver driver(functions);
  return found ? &driver : nullptr;
}

std::optional<DeviceDriver::Identity> DeviceDriver::identity() const noexcept {
  int device = 0;
  Functions::Uuid uuid{};
  if (call_.current_device(&device) != 0 || call_.uuid_of(&uuid, device) != 0) return {};
  return uuid.bytes;
}

void DeviceDriver::call_synchronize() const noexcept { call_.synchronize(); }

DeviceDriver::Piece DeviceDriver::allocate(std::size_t bytes,
                                           std::vector<std::int64_t> readers) const {
  int device = 0;
  if (call_.current_device(&device) != 0) return {};
  std::sort(readers.begin(), readers.end());
  auto& left = left_pieces();
  const std::scoped_lock lock(left.mutex);
  const auto fits = std::find_if(left.all.begin(), left.all.end(), [&](const auto& one) {
    const auto& before = one.second.readers;
    return one.first == device && one.second.bytes >= bytes &&
           std::includes(readers.begin(), readers.end(), before.begin(), before.end());
  });
  if (fits != left.all.end()) {
    auto piece = std::move(fits->second);
    left.all.erase(fits);
    piece.readers = std::move(readers);
    return piece;
  }
  Functions::Pointer pointer = 0;
  Functions::Handle handle{};
  if (call_.allocate(&pointer, bytes) != 0) return {};
  if (call_.handle_of(&handle, pointer) != 0) {
    call_.free(pointer);
    return {};
  }
  return {Functions::to_memory(pointer), bytes, handle.bytes, std::move(readers)};
}

void DeviceDriver::free(Piece piece) const noexcept {
  if (piece.data != nullptr) call_.free(Functions::to_pointer(piece.data));
}

void DeviceDriver::leave(Piece piece) const {
  int device = 0;
  if (piece.data == nullptr || call_.current_device(&device) != 0) return;
  auto& left = left_pieces();
  const std::scoped_lock lock(left.mutex);
  left.all.emplace_back(device, std::move(piece));
}

std::byte* DeviceDriver::map(const DeviceHandle& handle) const noexcept {
  constexpr unsigned kLazyPeerAccess = 1;
  Functions::Pointer pointer = 0;
  if (call_.open(&pointer, {handle}, kLazyPeerAccess) != 0) return nullptr;
  return Functions::to_memory(pointer);
}

void DeviceDriver::unmap(std::byte* memory) const noexcept {
  if (memory != nullptr) call_.close(Functions::to_pointer(memory));
}

}  // namespace sinew
