// The Python module behind `sinew_torch`.
#include <torch/csrc/utils/pybind.h>

#include <pybind11/chrono.h>
#include <pybind11/stl.h>

#include <algorithm>

#include "runtime/environment.hpp"
#include "torch_backend/compressed.hpp"
#include "torch_backend/job_trace.hpp"
#include "torch_backend/lane.hpp"

namespace py = pybind11;

namespace sinew {
namespace {

using BasePtr = c10::intrusive_ptr<BackendBase>;

BasePtr create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               std::chrono::duration<float> timeout) {
  const py::gil_scoped_release free;
  return c10::make_intrusive<Backend>(
      store, rank, size, std::chrono::duration_cast<std::chrono::milliseconds>(timeout));
}

c10::intrusive_ptr<Backend> ours(const BasePtr& base) {
  auto* const backend = dynamic_cast<Backend*>(base.get());
  if (backend == nullptr) throw py::type_error("this group is not one of the backend 'sinew'");
  return c10::intrusive_ptr<Backend>::reclaim_copy(backend);
}

// The classes of sinew_torch.errors, by code; kept to the end of the process.
py::dict& error_types() {
  static auto* const types = new py::dict();
  return *types;
}

/// "peer_lost": a word that programs can compare.
std::string word_of(Errc code) {
  std::string word(name(code));
  std::replace(word.begin(), word.end(), ' ', '_');
  return word;
}

// Codes without a class of their own are of the family's first.
PyObject* type_of(Errc code) {
  for (const auto& key : {word_of(code), std::string()})
    if (error_types().contains(key)) return py::object(error_types()[key.c_str()]).ptr();
  return PyExc_RuntimeError;
}

py::object recall(const std::string& text) {
  const auto error = recall_error(text);
  if (!error) return py::none();
  const auto& context = error->context();
  py::dict details;
  details["code"] = word_of(error->code());
  details["rank"] = context.rank;
  details["peer"] = context.peer;
  details["op"] = context.operation;
  details["sequence"] = context.sequence;
  return details;
}

void translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (BackendError& error) {
    PyErr_SetString(error.python_type(), error.what());
  } catch (const Error& error) {
    BackendError named(error, error.what());
    PyErr_SetString(named.python_type(), named.what());
  }
}

CompressionOptions options_of(double density, std::uint64_t warmup, const std::string& non_finite,
                              bool measure, const std::map<std::string, double>& parameters) {
  CompressionOptions options;
  options.density = density;
  options.dense_steps = warmup;
  options.non_finite = parse_non_finite(non_finite);
  options.measure = measure;
  options.parameters = parameters;
  return options;
}

using Names = std::vector<std::string>;
using Shapes = std::vector<std::vector<std::size_t>>;

std::vector<TensorSpec> layout_of(const Names& names, const Shapes& shapes) {
  std::vector<TensorSpec> layout;
  for (std::size_t i = 0; i < names.size(); ++i) layout.push_back({names[i], shapes.at(i)});
  return layout;
}

py::dict dict_of(const StepReport& report) {
  py::dict dict;
  dict["step"] = report.step;
  dict["elements"] = report.elements;
  dict["target_items"] = report.target_items;
  dict["local_items"] = report.local_items;
  dict["items"] = report.items;
  dict["density"] = report.density();
  dict["was_dense"] = report.was_dense;
  dict["skipped"] = report.skipped;
  dict["sent_bytes"] = report.sent_bytes();
  dict["received_bytes"] = report.received_bytes();
  py::dict parts;
  for (std::size_t part = 0; part < kParts; ++part)
    parts[name(static_cast<Part>(part)).data()] = report.part_ns[part];
  dict["part_ns"] = parts;
  if (report.measured) {
    dict["relative_error"] = report.relative_error;
    dict["cosine"] = report.cosine;
    dict["residual_norm"] = report.residual_norm;
    dict["gradient_norm"] = report.gradient_norm;
  }
  return dict;
}

py::list list_of(const std::vector<KeptBucket>& kept) {
  py::list buckets;
  for (const auto& [layout, state] : kept) {
    py::list names, shapes;
    for (const auto& tensor : layout) {
      names.append(tensor.name);
      shapes.append(py::cast(tensor.shape));
    }
    py::dict arrays;
    for (const auto& [name, array] : state.arrays())
      arrays[name.c_str()] = py::make_tuple(
          std::string(sinew::name(array.dtype)),
          py::bytes(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size()));
    py::dict bucket;
    bucket["names"] = names;
    bucket["shapes"] = shapes;
    bucket["arrays"] = arrays;
    buckets.append(bucket);
  }
  return buckets;
}

std::vector<KeptBucket> kept_of(const py::list& buckets) {
  std::vector<KeptBucket> kept;
  for (const auto& item : buckets) {
    const auto bucket = py::reinterpret_borrow<py::dict>(item);
    auto& one = kept.emplace_back();
    one.layout = layout_of(bucket["names"].cast<Names>(), bucket["shapes"].cast<Shapes>());
    for (const auto& [name, array] : bucket["arrays"].cast<py::dict>()) {
      const auto [dtype, bytes] = array.cast<std::pair<std::string, std::string>>();
      one.state.put(name.cast<std::string>(), parse_dtype(dtype),
                    std::as_bytes(std::span(bytes.data(), bytes.size())));
    }
  }
  return kept;
}

py::list schemes_list() {
  py::list all;
  for (const auto& scheme : schemes()) {
    py::dict parameters;
    for (const auto& one : scheme.parameters)
      parameters[py::str(one.name.data(), one.name.size())] =
          py::make_tuple(one.value, std::string(one.help));
    all.append(py::make_tuple(std::string(scheme.name), std::string(scheme.summary), scheme.sparse,
                              parameters));
  }
  return all;
}

// What launchers say about this process, in torchrun's names, where those are not set.
py::dict place() {
  const auto environment = read_environment(process_environment());
  py::dict place;
  place["launcher"] = environment.launcher;
  place["rank"] = environment.rank;
  place["size"] = environment.size;
  place["local_rank"] = environment.local_rank;
  place["local_size"] = environment.local_size;
  return place;
}

// Ranks that some launcher has started meet once, and rank 0 says where torch's store shall be.
std::string agree_on_master(const std::string& offer) {
  const py::gil_scoped_release free;
  auto communicator = connect();
  std::vector<std::uint8_t> text(256);
  std::copy_n(offer.begin(), std::min(offer.size(), text.size() - 1), text.begin());
  communicator.broadcast(std::span(text), 0);
  return reinterpret_cast<const char*>(text.data());
}

void define_buckets(py::module_& m) {
  py::class_<CompressedBuckets, std::shared_ptr<CompressedBuckets>>(m, "CompressedBuckets")
      .def(py::init([](const BasePtr& group, const std::string& scheme, double density,
                       std::uint64_t warmup, const std::string& non_finite, bool measure,
                       const std::map<std::string, double>& parameters,
                       std::optional<bool> on_device) {
        return std::make_shared<CompressedBuckets>(
            ours(group), scheme, options_of(density, warmup, non_finite, measure, parameters),
            on_device);
      }))
      .def("allreduce",
           [](CompressedBuckets& self, const at::Tensor& bucket, const Names& names,
              const Shapes& shapes) -> WorkPtr {
             auto layout = layout_of(names, shapes);
             const py::gil_scoped_release free;
             return self.allreduce(bucket, std::move(layout));
           })
      .def("reports",
           [](CompressedBuckets& self) {
             std::vector<StepReport> all;
             {
               const py::gil_scoped_release free;
               all = self.reports();
             }
             py::list list;
             for (const auto& report : all) list.append(dict_of(report));
             return list;
           })
      .def("save",
           [](CompressedBuckets& self) {
             std::vector<KeptBucket> kept;
             {
               const py::gil_scoped_release free;
               kept = self.save();
             }
             return list_of(kept);
           })
      .def("load", [](CompressedBuckets& self, const py::list& buckets) {
        auto kept = kept_of(buckets);
        const py::gil_scoped_release free;
        self.load(std::move(kept));
      });
}

}  // namespace

// At the end of the file, because the macro wants no namespace around it.
void define_module(py::module_& m) {
  m.doc() = "The torch.distributed backend `sinew`; use it by `import sinew_torch`.";
  m.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"));
  m.def("abort", [](const BasePtr& group) { ours(group)->abort(); });
  m.def("sums_on_device", [](const BasePtr& group) { return ours(group)->sums_on_device(); });
  m.def("stop_all", &Lane::stop_all, py::call_guard<py::gil_scoped_release>());
  m.def("is_ours",
        [](const BasePtr& group) { return dynamic_cast<Backend*>(group.get()) != nullptr; });
  m.def("set_error_types", [](const py::dict& types) {
    error_types() = types;
    BackendError::name_types(&type_of);
  });
  m.def("recall", &recall);
  m.def("schemes", &schemes_list);
  m.def("selects_on_device", [](const std::string& scheme) { return find_scheme(scheme).far; });
  m.def("place", &place);
  m.def("agree_on_master", &agree_on_master);
  m.def("enter_phase", &enter_phase);
  m.def("mark_step", &mark_step);
  m.def("torch_version", [] { return std::string(TORCH_VERSION); });
  define_buckets(m);
  py::register_exception_translator(&translate);
}

}  // namespace sinew

PYBIND11_MODULE(_backend, m) { sinew::define_module(m); }
