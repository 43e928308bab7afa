// What the module consists of.
#pragma once

#include <pybind11/pybind11.h>

namespace sinew::python {

void define_communicator(pybind11::module_& module);
/// verify, draw, predict, report, algorithms, schemes.
void define_analysis(pybind11::module_& module);
void define_frame(pybind11::module_& module);

}  // namespace sinew::python
