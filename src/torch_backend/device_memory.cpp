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
  int (*allocate)(Pointer*, std::size_t) = nullptr;
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
           take(allocate, "cuMemAlloc_v2") && take(handle_of, "cuIpcGetMemHandle") &&
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

DeviceDriver::Piece DeviceDriver::allocate(std::size_t bytes) const noexcept {
  int device = 0;
  if (call_.current_device(&device) != 0) return {};
  auto& left = left_pieces();
  const std::scoped_lock lock(left.mutex);
  const auto fits = std::find_if(left.all.begin(), left.all.end(), [&](const auto& one) {
    return one.first == device && one.second.bytes >= bytes;
  });
  if (fits != left.all.end()) {
    const auto piece = fits->second;
    left.all.erase(fits);
    return piece;
  }
  Functions::Pointer pointer = 0;
  Functions::Handle handle{};
  if (call_.allocate(&pointer, bytes) != 0 || call_.handle_of(&handle, pointer) != 0) return {};
  return {Functions::to_memory(pointer), bytes, handle.bytes};
}

void DeviceDriver::release(const Piece& piece) const noexcept {
  int device = 0;
  if (piece.data == nullptr || call_.current_device(&device) != 0) return;
  auto& left = left_pieces();
  const std::scoped_lock lock(left.mutex);
  left.all.emplace_back(device, piece);
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
