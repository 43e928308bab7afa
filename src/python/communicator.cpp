#include <sinew/communicator.hpp>

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include "python/buffers.hpp"
#include "python/parts.hpp"

namespace py = pybind11;

namespace sinew::python {
namespace {

using Counts = std::vector<std::size_t>;

/// What every collective may be told.
struct Extra {
  std::string op = "sum", algorithm, dtype;
  std::uint64_t tag = 0, likely_bytes = 0;
  double timeout = 0;
};

Extra extra_of(const py::kwargs& given) {
  Extra extra;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    if (name == "op")
      extra.op = value.cast<std::string>();
    else if (name == "algorithm")
      extra.algorithm = value.cast<std::string>();
    else if (name == "dtype")
      extra.dtype = value.cast<std::string>();
    else if (name == "tag")
      extra.tag = value.cast<std::uint64_t>();
    else if (name == "timeout")
      extra.timeout = value.cast<double>();
    else if (name == "likely_bytes")
      extra.likely_bytes = value.cast<std::uint64_t>();
    else
      throw py::type_error("no argument '" + name +
                           "'; there are op, algorithm, dtype, tag, timeout and likely_bytes");
  }
  return extra;
}

std::chrono::nanoseconds seconds(double value) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(value * 1e9));
}

/// A call in the making: the buffers live as long as it.
class Collectives {
 public:
  Collectives(Communicator& communicator, const py::kwargs& given)
      : communicator_(communicator), extra_(extra_of(given)) {}

  void run(Collective collective, const py::object& input, const py::object& output, int root,
           std::optional<std::size_t> count = {}, const Counts& counts = {},
           const Counts& recv_counts = {}) {
    const auto in = buffer(input, Buffer::Use::reads);
    const auto out = buffer(output, Buffer::Use::writes);
    Call call{.collective = collective, .op = parse_reduce_op(extra_.op), .root = root};
    if (in) call.dtype = in->dtype();
    if (out) call.dtype = out->dtype();
    if (in && out && in->dtype() != out->dtype())
      throw Error(Errc::invalid_argument, "input and output are of different types");
    call.input = in ? in->data() : nullptr;
    call.output = out ? out->data() : nullptr;
    call.count = count ? *count : (in ? in->elements() : 0);
    if (!counts.empty()) call.counts = counts;
    if (!recv_counts.empty()) call.recv_counts = recv_counts;
    call.options = {.algorithm = extra_.algorithm,
                    .tag = extra_.tag,
                    .timeout = seconds(extra_.timeout),
                    .likely_bytes = extra_.likely_bytes};
    check(collective, in, out, root, call);
    const py::gil_scoped_release free;
    communicator_.run(call);
  }

 private:
  std::optional<Buffer> buffer(const py::object& object, Buffer::Use use) const {
    if (object.is_none()) return {};
    if (!py::isinstance<py::buffer>(object))
      throw py::type_error("an object with the buffer protocol is needed, such as a NumPy array");
    return std::optional<Buffer>(std::in_place, py::reinterpret_borrow<py::buffer>(object), use,
                                 extra_.dtype);
  }

  [[nodiscard]] static std::size_t sum(std::span<const std::size_t> counts) {
    std::size_t total = 0;
    for (const auto count : counts) total += count;
    return total;
  }

  // Python has no types that say which buffer is how large: so it is looked at here.
  void check(Collective collective, const std::optional<Buffer>& in,
             const std::optional<Buffer>& out, int root, const Call& call) const {
    const auto size = static_cast<std::size_t>(communicator_.size());
    const bool is_root = communicator_.rank() == root;
    std::size_t input = call.count, output = call.count;
    const bool ragged = call.counts.data() != nullptr;
    switch (collective) {
      case Collective::allgather:
        output = ragged ? sum(call.counts) : call.count * size;
        break;
      case Collective::gather:
        output = is_root ? (ragged ? sum(call.counts) : call.count * size) : 0;
        break;
      case Collective::reduce_scatter:
        input = ragged ? sum(call.counts) : call.count * size;
        break;
      case Collective::scatter:
        input = is_root ? (ragged ? sum(call.counts) : call.count * size) : 0;
        break;
      case Collective::alltoall:
        input = ragged ? sum(call.counts) : call.count * size;
        output = ragged ? sum(call.recv_counts) : call.count * size;
        break;
      case Collective::reduce:
        output = is_root ? call.count : 0;
        break;
      default:
        break;
    }
    if ((in ? in->elements() : 0) < input)
      throw Error(Errc::invalid_argument,
                  "the input has " + std::to_string(in ? in->elements() : 0) + " elements, and " +
                      std::to_string(input) + " are needed");
    if ((out ? out->elements() : 0) < output)
      throw Error(Errc::invalid_argument,
                  "the output has " + std::to_string(out ? out->elements() : 0) +
                      " elements, and " + std::to_string(output) + " are needed");
  }

  Communicator& communicator_;
  Extra extra_;
};

std::size_t elements_of(const py::object& object, const py::kwargs& given) {
  return Buffer(py::reinterpret_borrow<py::buffer>(object), Buffer::Use::reads,
                extra_of(given).dtype)
      .elements();
}

/// A message or collective under way, with what it reads or writes.
struct Pending {
  std::shared_ptr<Communicator> communicator;
  Request request;
  std::shared_ptr<Buffer> buffer;
};

using Shared = std::shared_ptr<Communicator>;

Pending isend(const Shared& self, const py::buffer& data, int dest, std::uint32_t tag) {
  auto buffer = std::make_shared<Buffer>(data, Buffer::Use::reads);
  const py::gil_scoped_release free;
  return {self, self->isend(buffer->read(), dest, tag), buffer};
}
Pending irecv(const Shared& self, const py::buffer& data, int source, std::uint32_t tag) {
  auto buffer = std::make_shared<Buffer>(data, Buffer::Use::writes);
  const py::gil_scoped_release free;
  return {self, self->irecv(buffer->write(), source, tag), buffer};
}
void wait(const Pending& pending) {
  const py::gil_scoped_release free;
  pending.communicator->wait(pending.request);
}

void define_messages(py::class_<Communicator, Shared>& type) {
  type.def("isend", &isend, py::arg("data"), py::arg("dest"), py::arg("tag") = 0,
           "Begins to send; wait() on what it returns.")
      .def("irecv", &irecv, py::arg("data"), py::arg("source"), py::arg("tag") = 0,
           "Begins to receive into `data`, which must have the size of what is sent.")
      .def(
          "send",
          [](const Shared& self, const py::buffer& data, int dest, std::uint32_t tag) {
            wait(isend(self, data, dest, tag));
          },
          py::arg("data"), py::arg("dest"), py::arg("tag") = 0, "Sends, and waits for it.")
      .def(
          "recv",
          [](const Shared& self, const py::buffer& data, int source, std::uint32_t tag) {
            wait(irecv(self, data, source, tag));
          },
          py::arg("data"), py::arg("source"), py::arg("tag") = 0, "Receives, and waits for it.")
      .def(
          "sendrecv",
          [](const Shared& self, const py::buffer& out, int dest, const py::buffer& in, int source,
             std::uint32_t tag) {
            const auto coming = irecv(self, in, source, tag);
            wait(isend(self, out, dest, tag));
            wait(coming);
          },
          py::arg("out"), py::arg("dest"), py::arg("into"), py::arg("source"), py::arg("tag") = 0,
          "Sends to one rank and receives from another at once, which cannot deadlock.");
}

void define_collectives(py::class_<Communicator, Shared>& type) {
  type.def(
          "allreduce",
          [](Communicator& self, const py::object& data, const py::object& out,
             const py::kwargs& given) {
            Collectives(self, given)
                .run(Collective::allreduce, data, out.is_none() ? data : out, 0);
          },
          py::arg("data"), py::arg("out") = py::none(),
          "Combines `data` of all ranks by `op`, in place or into `out`.")
      .def(
          "reduce",
          [](Communicator& self, const py::object& data, const py::object& out, int root,
             const py::kwargs& given) {
            Collectives(self, given)
                .run(Collective::reduce, data, self.rank() == root ? out : py::object(py::none()),
                     root);
          },
          py::arg("data"), py::arg("out") = py::none(), py::arg("root") = 0,
          "The same, for the root only.")
      .def(
          "broadcast",
          [](Communicator& self, const py::object& data, int root, const py::kwargs& given) {
            Collectives(self, given).run(Collective::broadcast, data, data, root);
          },
          py::arg("data"), py::arg("root") = 0, "The root's `data`, on all ranks.")
      .def(
          "allgather",
          [](Communicator& self, const py::object& data, const py::object& out,
             const Counts& counts, const py::kwargs& given) {
            Collectives(self, given).run(Collective::allgather, data, out, 0, {}, counts);
          },
          py::arg("data"), py::arg("out"), py::arg("counts") = Counts{},
          "Everybody's `data` in rank order; `counts` where ranks have different numbers.")
      .def(
          "reduce_scatter",
          [](Communicator& self, const py::object& data, const py::object& out,
             const Counts& counts, const py::kwargs& given) {
            Collectives(self, given)
                .run(Collective::reduce_scatter, data, out, 0, elements_of(out, given), counts);
          },
          py::arg("data"), py::arg("out"), py::arg("counts") = Counts{},
          "Combines everybody's `data`, of which each rank gets its part.")
      .def(
          "alltoall",
          [](Communicator& self, const py::object& data, const py::object& out,
             const Counts& counts, const Counts& recv_counts, const py::kwargs& given) {
            const auto each = elements_of(data, given) / static_cast<std::size_t>(self.size());
            Collectives(self, given)
                .run(Collective::alltoall, data, out, 0, counts.empty() ? each : 0, counts,
                     recv_counts);
          },
          py::arg("data"), py::arg("out"), py::arg("counts") = Counts{},
          py::arg("recv_counts") = Counts{}, "A part for each rank, from each rank.")
      .def(
          "scatter",
          [](Communicator& self, const py::object& data, const py::object& out, int root,
             const py::kwargs& given) {
            Collectives(self, given)
                .run(Collective::scatter, self.rank() == root ? data : py::object(py::none()), out,
                     root, elements_of(out, given));
          },
          py::arg("data"), py::arg("out"), py::arg("root") = 0, "The root's parts, one a rank.")
      .def(
          "gather",
          [](Communicator& self, const py::object& data, const py::object& out, int root,
             const py::kwargs& given) {
            Collectives(self, given)
                .run(Collective::gather, data, self.rank() == root ? out : py::object(py::none()),
                     root);
          },
          py::arg("data"), py::arg("out") = py::none(), py::arg("root") = 0,
          "Everybody's `data` in rank order, for the root.")
      .def(
          "barrier",
          [](Communicator& self) {
            const py::gil_scoped_release free;
            self.barrier();
          },
          "Returns when all ranks have come.");
}

}  // namespace

void define_communicator(py::module_& m) {
  py::class_<Pending>(m, "Request", "A message under way.")
      .def("wait", &wait, "Returns when it is done.")
      .def(
          "test", [](const Pending& self) { return self.communicator->test(self.request); },
          "Whether it is done.");
  py::class_<Communicator, Shared> type(m, "Communicator", "A group of ranks.");
  type.def_property_readonly("rank", &Communicator::rank, "From 0.")
      .def_property_readonly("size", &Communicator::size, "How many ranks there are.")
      .def_property_readonly("transport", &Communicator::transport, "What moves the bytes.")
      .def_property_readonly("epoch", &Communicator::epoch, "How often it was shrunk.")
      .def(
          "split",
          [](Communicator& self, int color, int key) {
            const py::gil_scoped_release free;
            return std::make_shared<Communicator>(self.split(color, key));
          },
          py::arg("color"), py::arg("key") = 0,
          "A communicator of those who gave the same colour, ranked by key.")
      .def(
          "dup",
          [](Communicator& self) {
            const py::gil_scoped_release free;
            return std::make_shared<Communicator>(self.dup());
          },
          "Another one of the same ranks.")
      .def(
          "shrink",
          [](Communicator& self, double patience) {
            const py::gil_scoped_release free;
            return std::make_shared<Communicator>(self.shrink(seconds(patience)));
          },
          py::arg("patience") = 0.0, "After a failure: those who are left.");
  define_collectives(type);
  define_messages(type);
  m.def(
      "connect",
      [](double timeout, const std::string& transport, bool deterministic,
         const std::string& algorithm) {
        Options options;
        if (timeout > 0) options.timeout = seconds(timeout);
        options.transport = transport;
        options.deterministic = deterministic;
        options.algorithm = algorithm;
        const py::gil_scoped_release free;
        return std::make_shared<Communicator>(connect(options));
      },
      py::arg("timeout") = 300.0, py::arg("transport") = "", py::arg("deterministic") = false,
      py::arg("algorithm") = "",
      "Joins the group that the launcher has made; alone, a group of one.");
  m.def(
      "run_local",
      [](int size, const std::function<void(Shared)>& body) {
        const py::gil_scoped_release free;
        run_local(size, [&](Communicator& communicator) {
          // Borrowed: it belongs to the thread that is its rank.
          body(Shared(&communicator, [](Communicator*) {}));
        });
      },
      py::arg("size"), py::arg("body"),
      "Runs body(communicator) as `size` ranks in threads of this process.");
}

}  // namespace sinew::python
