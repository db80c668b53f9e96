// The functions of extension tables, called as CheckedApi calls those of tn_backend_api.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon::plugins {

// TN_EXT_COLLECTIVES. Functions have the names and arguments of tn_collectives.
class TENON_API CheckedCollectives {
 public:
  // Returns nothing if the plugin does not offer the extension, or with a warning in the log, if
  // its table is too short or lacks a function. `api` has to live as long.
  static std::optional<CheckedCollectives> of(const CheckedApi& api);

  tn_error* communicator_create(tn_device* const* devices, size_t count,
                                tn_communicator** communicator) const noexcept;
  void communicator_destroy(tn_communicator* communicator) const noexcept;
  tn_error* all_reduce(tn_communicator* communicator, const void* const* inputs,
                       void* const* outputs, uint64_t elements, tn_dtype dtype, tn_reduce_op op,
                       tn_stream* const* streams) const noexcept;
  tn_error* broadcast(tn_communicator* communicator, void* const* buffers, uint64_t elements,
                      tn_dtype dtype, uint32_t root, tn_stream* const* streams) const noexcept;
  tn_error* group_begin(tn_communicator* communicator) const noexcept;
  tn_error* group_end(tn_communicator* communicator) const noexcept;

 private:
  CheckedCollectives(const CheckedApi& api, const tn_collectives& table)
      : api_(&api), table_(&table) {}
  const CheckedApi* api_;
  const tn_collectives* table_;
};

// TN_EXT_STREAM_CAPTURE. Functions have the names and arguments of tn_stream_capture.
class TENON_API CheckedCapture {
 public:
  // As for CheckedCollectives.
  static std::optional<CheckedCapture> of(const CheckedApi& api);

  tn_error* begin(tn_stream* stream) const noexcept;
  tn_error* end(tn_stream* stream, tn_graph** graph) const noexcept;
  tn_error* launch(tn_graph* graph, tn_stream* stream) const noexcept;
  void destroy(tn_graph* graph) const noexcept;
  tn_capture_flags flags() const;

 private:
  CheckedCapture(const CheckedApi& api, const tn_stream_capture& table)
      : api_(&api), table_(&table) {}
  const CheckedApi* api_;
  const tn_stream_capture* table_;
};

// TN_EXT_PROFILING, of which the host asks for times alone.
class TENON_API CheckedProfiling {
 public:
  // As for CheckedCollectives. Events that the plugin makes from then on keep their times.
  static std::optional<CheckedProfiling> of(const CheckedApi& api);

  const char* name() const { return api_->name(); }
  // For two events of one stream that are reached and were made after of().
  tn_error* elapsed(tn_event* begin, tn_event* end, double* milliseconds) const noexcept;

 private:
  CheckedProfiling(const CheckedApi& api, const tn_profiling& table) : api_(&api), table_(&table) {}
  const CheckedApi* api_;
  const tn_profiling* table_;
};

}  // namespace tenon::plugins
