// All exceptions of Tenon. A message says what was asked, what was found, where (operator, module
// path) and what to do.
#pragma once

#include <stdexcept>
#include <string>

#include <tenon/core/api.h>

namespace tenon {

// The base of all exceptions of Tenon.
class TENON_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  // Tells whether something failed before the call that throws this: queued work that the call
  // waits for, or its device. The text says what that was and where, so nobody adds the names of
  // the call.
  bool of_earlier_work = false;
};

#define TENON_ERROR(Name, Base)        \
  class TENON_API Name : public Base { \
   public:                             \
    using Base::Base;                  \
  };

TENON_ERROR(ValueError, Error)       // an invalid argument
TENON_ERROR(ShapeError, ValueError)  // shapes that do not fit each other
TENON_ERROR(DTypeError, ValueError)  // an element type that the operator does not take
TENON_ERROR(IndexError, ValueError)  // an index or a label that is out of range
TENON_ERROR(DeviceError, Error)  // an unknown device, tensors on different devices, a failed device
TENON_ERROR(OutOfMemoryError, DeviceError)  // memory that a device or the host does not have
TENON_ERROR(PluginError,
            DeviceError)  // a backend that cannot be loaded; the text contains the load report
TENON_ERROR(UnsupportedError, DeviceError)  // an operator that no plugin of the device implements
TENON_ERROR(AutogradError, Error)           // backward twice, a changed value, no graph
TENON_ERROR(DataError, Error)               // a data set: a missing, truncated or corrupt file
TENON_ERROR(CheckpointError,
            Error)  // a checkpoint file: missing, truncated, corrupt, of another version
TENON_ERROR(StateDictError, Error)  // keys or shapes that do not fit the model

#undef TENON_ERROR

}  // namespace tenon
