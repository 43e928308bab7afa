#include <pybind11/stl.h>

#include <sinew/tensor_frame.hpp>
#include "python/buffers.hpp"
#include "python/parts.hpp"

namespace py = pybind11;

namespace sinew::python {
namespace {

/// (name, buffer, dtype or "")
using Item = std::tuple<std::string, py::buffer, std::string>;

py::bytes write_frame(const std::vector<Item>& items, const std::string& metadata,
                      const std::string& codec, int level, bool shuffle) {
  std::vector<Buffer> buffers;
  std::vector<std::vector<std::uint64_t>> shapes;
  buffers.reserve(items.size());
  shapes.reserve(items.size());
  std::vector<TensorView> tensors;
  std::uint32_t widest = 1;
  for (const auto& [name, object, dtype] : items) {
    const auto& buffer = buffers.emplace_back(object, Buffer::Use::reads, dtype);
    auto& shape = shapes.emplace_back();
    for (const auto extent : object.request().shape)
      shape.push_back(static_cast<std::uint64_t>(extent));
    tensors.push_back(
        {.name = name, .dtype = buffer.dtype(), .shape = shape, .data = buffer.read()});
    widest = std::max(widest, static_cast<std::uint32_t>(size_of(buffer.dtype())));
  }
  LosslessOptions compression{.codec = parse_codec(codec), .level = level};
  if (shuffle) compression.shuffle = widest;
  std::vector<std::byte> frame;
  {
    const py::gil_scoped_release free;
    frame = write_tensor_frame(tensors, metadata, compression);
  }
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

/// (metadata, [(name, dtype, shape, offset of the data in the frame or -1, data where unpacked)])
py::tuple read_frame(const py::buffer& object, bool verify) {
  const auto info = object.request();
  const std::span frame(static_cast<const std::byte*>(info.ptr),
                        static_cast<std::size_t>(info.size * info.itemsize));
  const TensorFrame read(frame, {.verify_data = verify});
  py::list tensors;
  for (const auto& tensor : read.tensors()) {
    const auto dtype = std::string(name(tensor.dtype));
    if (tensor.codec == Codec::none) {
      tensors.append(py::make_tuple(std::string(tensor.name), dtype, tensor.shape,
                                    tensor.stored.data() - frame.data(), py::none()));
      continue;
    }
    auto data = py::reinterpret_steal<py::object>(
        PyByteArray_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(tensor.bytes)));
    tensor.copy_to({reinterpret_cast<std::byte*>(PyByteArray_AsString(data.ptr())), tensor.bytes});
    tensors.append(
        py::make_tuple(std::string(tensor.name), dtype, tensor.shape, -1, std::move(data)));
  }
  return py::make_tuple(std::string(read.metadata()), tensors);
}

}  // namespace

void define_frame(py::module_& m) {
  m.def("write_frame", &write_frame);
  m.def("read_frame", &read_frame);
}

}  // namespace sinew::python
