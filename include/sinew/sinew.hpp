// Everything: `#include <sinew/sinew.hpp>`.
#pragma once

#include <sinew/algorithms.hpp>
#include <sinew/communicator.hpp>
#include <sinew/compression.hpp>
#include <sinew/draw.hpp>
#include <sinew/error.hpp>
#include <sinew/lossless.hpp>
#include <sinew/schedule.hpp>
#include <sinew/scheme.hpp>
#include <sinew/tensor_frame.hpp>
#include <sinew/trace.hpp>
#include <sinew/transport.hpp>
#include <sinew/types.hpp>
#include <sinew/verify.hpp>
