// The Python module behind the package `sinew`.
#include <algorithm>
#include <string>

#include <sinew/error.hpp>
#include "python/parts.hpp"

namespace py = pybind11;

namespace {

// An instance of sinew.Error with its attributes; the class is made in Python.
// NOLINTNEXTLINE(performance-unnecessary-value-param): as pybind11 calls it
void translate(std::exception_ptr failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const sinew::Error& error) {
    const auto& context = error.context();
    std::string code(sinew::name(error.code()));
    std::replace(code.begin(), code.end(), ' ', '_');
    const auto make = py::module_::import("sinew.errors").attr("_make");
    const auto raised =
        make(code, error.what(), context.rank, context.peer, context.operation, context.sequence);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(raised.ptr())), raised.ptr());
  }
}

}  // namespace

PYBIND11_MODULE(_sinew, m) {
  m.doc() = "Collectives as schedules: executed, verified, predicted and drawn.";
  py::register_local_exception_translator(&translate);
  sinew::python::define_communicator(m);
  sinew::python::define_analysis(m);
  sinew::python::define_frame(m);
}
