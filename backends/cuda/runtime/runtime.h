// The functions of the plugin's table, by the file that defines them.
#pragma once

#include <tenon/plugins/abi/abi.h>

namespace tenon::cuda {

// device.cpp
tn_error* device_count(tn_backend*, uint32_t* count);
tn_error* device_open(tn_backend*, uint32_t index, tn_device** device);
void device_close(tn_device* device);
tn_error* device_info(tn_device* device, tn_device_info* info);

// memory.cpp
tn_error* memory_kinds(tn_device* device, const tn_memory_kind* const** kinds, size_t* count);
tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, void** memory);
void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes);
tn_error* copy(tn_device* device, const tn_copy* copy, tn_stream* stream);

// stream.cpp
tn_error* stream_create(tn_device* device, tn_stream** stream);
void stream_destroy(tn_stream* stream);
tn_error* event_create(tn_device* device, tn_event** event);
void event_destroy(tn_event* event);
tn_error* event_record(tn_event* event, tn_stream* stream);
tn_error* stream_wait(tn_stream* stream, tn_event* event);
tn_error* event_query(tn_event* event, int32_t* done);
tn_error* event_wait(tn_event* event);
// Throws what the first of them says that fails, after all have been waited for.
void wait_for_streams();

// Milliseconds between events. Events that are made after keep_times() have times.
extern const tn_profiling profiling;
void keep_times();

// backend.cpp: whether the process ends. What belongs to NCCL and the other libraries is left to it
// then, as their own exit handlers may have run.
bool ending();

// capture.cpp, collectives.cpp
extern const tn_stream_capture stream_capture;
void refuse_while_capturing(const tn_stream* stream,
                            const char* what);  // throws, and leaves the recording as it is
extern const tn_collectives collectives;

}  // namespace tenon::cuda
