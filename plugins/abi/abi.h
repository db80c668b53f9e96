/* Tenon plugin ABI 1.3: the joint between the core and a hardware backend.
 *
 * This header is plain C11 and, with windows.h beside it, all that the core and a plugin share.
 * `docs/plugins.md` is the guide; this is the contract. Three rules hold everywhere:
 *
 *   Sizes.   Every struct starts with `struct_size`, set by whoever fills the struct to sizeof of
 *            the struct it was compiled with. Structs only ever grow at their end. Before reading
 *            a field that was added after 1.0 (marked [1.1] to [1.3]), test it with TN_HAS.
 *   Errors.  A function that can fail returns `tn_error*`: NULL is success, anything else is owned
 *            by the caller, who ends it with error->destroy(error). No function aborts the process
 *            and none lets a C++ exception out.
 *   Strings  are UTF-8, NUL-terminated, and live as long as the object that holds them unless it is
 *            said otherwise.
 *
 * Direction marks: [in] read by the callee during the call only; [out] written by the callee on
 * success, untouched on failure. Nullable pointers say so; all others must not be NULL.
 */
#ifndef TENON_PLUGINS_ABI_ABI_H_
#define TENON_PLUGINS_ABI_ABI_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version ---------------------------------------------------------------------------------
 * MAJOR changes when a compiled plugin could misbehave: the host refuses it. MINOR counts
 * additions: a plugin that is older or newer than the host works with what both know. */
#define TN_ABI_MAJOR 1u
#define TN_ABI_MINOR 3u

/* "TENONPLG" read as a little-endian integer: tells the query symbol of a plugin from any other
 * data. */
#define TN_PLUGIN_MAGIC UINT64_C(0x474c504e4f4e4554)

/* True where `ptr` points at a struct whose writer knew `field`. */
#define TN_HAS(type, ptr, field) \
  ((ptr)->struct_size >= offsetof(type, field) + sizeof((ptr)->field))

#if defined(__GNUC__)
#define TN_EXPORT __attribute__((visibility("default")))
#else
#define TN_EXPORT
#endif

/* Dimensions a tensor may have at most. */
#define TN_MAX_RANK 8u

/* Opaque to the host; each plugin defines its own. */
typedef struct tn_backend tn_backend; /* one loaded plugin */
typedef struct tn_device tn_device;   /* one opened device */
typedef struct tn_stream tn_stream;   /* an in-order queue of work on a device */
typedef struct tn_event tn_event;     /* a point in a stream */

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef int32_t tn_code;
enum {
  TN_CODE_INVALID_ARGUMENT = 1, /* the request is malformed: a bug, or a bad user value */
  TN_CODE_OUT_OF_RANGE = 2,     /* an index or label lies outside what it indexes */
  TN_CODE_UNSUPPORTED = 3,      /* understood, not offered; the message is the reason */
  TN_CODE_OUT_OF_MEMORY = 4,    /* the host frees its caches and asks once more */
  TN_CODE_UNAVAILABLE = 5,      /* no such device, no driver, a missing library */
  /* The device cannot be used again in this process: the host queues nothing more on it. */
  TN_CODE_DEVICE_LOST = 6,
  TN_CODE_INTERNAL = 7 /* anything else */
};

typedef struct tn_key_value {
  const char* key;
  const char* value;
} tn_key_value;

typedef struct tn_error tn_error;
struct tn_error {
  size_t struct_size;
  tn_code code;
  const char* message; /* one sentence: what was asked, what was found */
  size_t num_details;  /* at most 256 */
  /* More facts, e.g. {"index", "12"}, {"classes", "10"}; NULL where num_details is 0. An error that
   * shows late, out of an event, may name its operator: {"op", "embedding"}. The host knows which
   * of that name were in flight, on what and for which module. */
  const tn_key_value* details;
  void (*destroy)(tn_error* self);
};

/* ---- Data types and descriptors -------------------------------------------------------------- */

typedef int32_t tn_dtype;
enum {
  TN_F32 = 0,
  TN_F64 = 1,
  TN_F16 = 2,
  TN_BF16 = 3,
  TN_I64 = 4,
  TN_I32 = 5,
  TN_U8 = 6,
  TN_BOOL = 7 /* one byte, 0 or 1 */
};

/* A tensor as an operator sees it. Strides are in elements, may be 0 (expanded) and are never
 * negative. */
typedef struct tn_tensor_desc {
  size_t struct_size;
  tn_dtype dtype;
  uint32_t rank; /* 0 is a scalar; at most TN_MAX_RANK */
  int64_t shape[TN_MAX_RANK];
  int64_t strides[TN_MAX_RANK];
} tn_tensor_desc;

typedef int32_t tn_attr_kind;
enum { TN_ATTR_INT = 0, TN_ATTR_FLOAT = 1, TN_ATTR_BOOL = 2, TN_ATTR_STRING = 3, TN_ATTR_INTS = 4 };

/* A static argument of an operator: known when the plan is made and the same in every run of it. */
typedef struct tn_attr {
  size_t struct_size;
  const char* name; /* PyTorch's argument name: "stride", "dim", "eps" */
  tn_attr_kind kind;
  int64_t i;       /* TN_ATTR_INT; TN_ATTR_BOOL as 0 or 1 */
  double f;        /* TN_ATTR_FLOAT */
  const char* s;   /* TN_ATTR_STRING */
  size_t num_ints; /* TN_ATTR_INTS */
  const int64_t* ints;
} tn_attr;

/* A dynamic argument: handed over at each run (learning rate, random seed, the 2 of x * 2). The
 * operator says which member. */
typedef union tn_scalar {
  double f;
  int64_t i;
} tn_scalar;

/* ---- Plans -----------------------------------------------------------------------------------
 * An operator instance is prepared once and run many times. Everything worth choosing or
 * precomputing belongs on the plan. */

typedef struct tn_op_request {
  size_t struct_size;
  /* E.g. "conv2d"; docs/operators.md lists names, inputs, outputs, attributes and scalars. */
  const char* op;
  size_t num_inputs;
  const tn_tensor_desc* const* inputs; /* an entry is NULL where an optional input is absent */
  size_t num_outputs;
  /* An entry is NULL where nobody wants the output. Of an operator that is not pointwise, outputs
   * are row-major. [1.3] They may have other strides without gaps, such as channels last, which the
   * host proposes: a plugin that does not write them answers TN_CODE_UNSUPPORTED, and is asked
   * again with row-major outputs. A plugin of 1.2 or older is not asked for them. */
  const tn_tensor_desc* const* outputs;
  /* For output i, the index of the input whose memory it is (same descriptor, updated in place), or
   * -1: no overlap with any input. NULL where no output aliases. */
  const int32_t* aliases;
  size_t num_attrs;
  const tn_attr* const* attrs;
  size_t num_scalars;
} tn_op_request;

typedef struct tn_run {
  size_t struct_size;
  /* The first element of each input; NULL where absent or where it has no elements. */
  void* const* inputs;
  void* const* outputs;
  const tn_scalar* scalars; /* NULL where the operator takes none */
  /* plan->workspace_bytes bytes aligned to 64, contents undefined; NULL where that is 0. */
  void* workspace;
  tn_stream* stream; /* NULL for a caller's-thread device */
  /* [1.2] How many inputs, outputs and scalars there are: the numbers of the request for which the
   * plan was made. Who copies the arrays can do so without its own note of these numbers. */
  size_t num_inputs;
  size_t num_outputs;
  size_t num_scalars;
  /* [1.2] For a plan with TN_PLAN_INPUT_VERSIONS, a number for each input. Two runs with the same
   * number and the same pointer of an input read the same bytes there, even where memory was freed
   * and used again between them: no number is given twice in a process. 0 says nothing, as for an
   * input that is absent. NULL for other plans, and where runs are recorded. */
  const uint64_t* input_versions;
} tn_run;

typedef uint64_t tn_plan_flags;
enum {
  /* The plan keeps what it computes from inputs that do not change (a reordered weight), and wants
   * tn_run.input_versions. */
  TN_PLAN_INPUT_VERSIONS = 1u << 0
};

/* The head of every plan; a plugin embeds it at the start of a struct of its own. */
typedef struct tn_plan tn_plan;
struct tn_plan {
  size_t struct_size;
  /* Queues the work on args->stream, or does it before returning on a caller's-thread device.
   * Pointers in `args` need to live for the call only; the memory they name lives until the stream
   * has passed this point. Calls for one plan never overlap. What the plan itself owns and its work
   * uses (pinned tables, descriptors) must stay as it is when `run` is called again before that
   * work is done, and while a graph that recorded the run lives: the host destroys a plan only
   * after both. */
  tn_error* (*run)(tn_plan* self, const tn_run* args);
  void (*destroy)(tn_plan* self);
  uint64_t workspace_bytes;
  /* Estimated time of one run on one core, 0 where unknown. The host runs a plan in place, without
   * queueing, only where it is known to be short. Caller's-thread devices should fill it. Where
   * several plugins make a plan, the lowest cost is used. A plan of an overlay with cost 0 goes
   * before all that have one, and a plan of the device's own plugin with cost 0 behind them. */
  uint64_t cost_ns;
  tn_plan_flags flags; /* [1.2] Those that the host does not know have no effect. */
};

/* ---- Memory ---------------------------------------------------------------------------------- */

typedef uint32_t tn_memory_flags;
enum {
  TN_MEMORY_HOST_VISIBLE = 1u << 0, /* the CPU may read and write it through the pointer */
  TN_MEMORY_DEVICE_LOCAL = 1u << 1, /* fast for the device's operators */
  TN_MEMORY_PINNED = 1u << 2 /* host memory that the device copies from and to without a bounce */
};

typedef struct tn_memory_kind {
  size_t struct_size;
  const char* name; /* "host", "device", "pinned" */
  tn_memory_flags flags;
  uint64_t alignment; /* of every allocation, a power of two, at least 64 */
  /* [1.1] What one allocation really takes, or is worth asking for, because asking is slow: 2 MiB
   * on a GPU. The host asks for multiples of it, and cuts blocks of any size out of them. 0: it
   * chooses the sizes itself. */
  uint64_t granularity;
} tn_memory_kind;

/* ---- Devices --------------------------------------------------------------------------------- */

typedef uint32_t tn_device_flags;
enum {
  /* Plans and copies run on the thread that calls them. The stream and event functions may be NULL:
   * the host brings asynchronous streams of its own, one worker a device. */
  TN_DEVICE_CALLER_THREAD = 1u << 0,
  /* Logical devices: any index may be opened, as many as the user asks for. device_count says how
   * many exist by default. */
  TN_DEVICE_LOGICAL = 1u << 1
};

typedef struct tn_device_info {
  size_t struct_size;
  tn_device_flags flags;
  char name[128];        /* for people: "Intel Xeon, AVX-512" */
  uint64_t memory_total; /* bytes; 0 where unknown */
  uint64_t memory_free;
  uint32_t threads;  /* of this device's share of the CPU; 0 where that means nothing */
  uint32_t reserved; /* [1.1] 0. It was padding, which a plugin of 1.0 may have left undefined */
  char architecture[32]; /* [1.1] what code is made for: "sm_90"; empty where that means nothing */
  char driver[64];       /* [1.1] "CUDA 13.0, driver 580.65"; empty where there is none */
} tn_device_info;

/* A contiguous copy; source and destination do not overlap. At most one of `dst_device` and
 * `src_device` is NULL, which means host memory. Where neither is, both are devices of the same
 * plugin. */
typedef struct tn_copy {
  size_t struct_size;
  void* dst;
  const void* src;
  uint64_t bytes;
  tn_device* dst_device; /* nullable */
  tn_device* src_device; /* nullable */
} tn_copy;

/* ---- Host services: what a plugin may ask of the process that loaded it ---------------------- */

typedef int32_t tn_log_level;
enum { TN_LOG_DEBUG = 0, TN_LOG_INFO = 1, TN_LOG_WARNING = 2, TN_LOG_ERROR = 3 };

/* Part of a parallel loop: indices [begin, end). `slot` is below host->thread_count() and differs
 * between parts that run at the same time within one loop, so it can pick a thread's share of the
 * workspace. Must not let an exception out. */
typedef void (*tn_loop_body)(void* context, int64_t begin, int64_t end, uint32_t slot);

typedef struct tn_host {
  size_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  void* context;           /* pass back as the first argument of the functions below */
  const char* plugin_path; /* canonical path of the plugin's own library */
  /* Any thread. One line, without the newline. */
  void (*log)(void* context, tn_log_level level, const char* message);
  /* Threads of the one budget that all plugins share. A plugin must not create compute threads of
   * its own. */
  uint32_t (*thread_count)(void* context);
  /* Runs body over [0, n), split into parts of at least `grain` indices over the shared threads,
   * the caller among them, and returns when all parts are done. How it splits depends on n, grain
   * and thread_count only. A call from within a body runs inline on slot 0. */
  void (*parallel_for)(void* context, int64_t n, int64_t grain, tn_loop_body body,
                       void* body_context);
} tn_host;

/* ---- The backend: what a plugin offers ------------------------------------------------------- */

/* Function table, filled once by init. All functions may be called from any thread, and at the same
 * time, unless it is said otherwise. Required ones are marked (R); others may be NULL.
 *
 * For an overlay only device_open, device_close, supports and plan_create are required, and besides
 * them only extension, drain and shutdown are used: memory, streams and copies belong to the plugin
 * it lies over. Its device_open(index) stands for device `index` of that plugin; pointers and
 * tn_run.stream are that plugin's, NULL over a caller's-thread device. */
typedef struct tn_backend_api {
  size_t struct_size;
  /* First argument of the backend-wide functions; may be NULL if the plugin needs no state. */
  tn_backend* backend;

  /* (R) Devices that exist now, at most 1024. An error is the reason why there are none. */
  tn_error* (*device_count)(tn_backend* backend, uint32_t* count /* [out] */);
  /* (R) Opens device `index`. The host opens each index once and shares it. */
  tn_error* (*device_open)(tn_backend* backend, uint32_t index, tn_device** device /* [out] */);
  /* (R) Called at exit, after drain. A caller's-thread device is not closed: the process computes
   * on it until it has ended. */
  void (*device_close)(tn_device* device);
  /* (R) `info->struct_size` is set by the caller to what it has room for. */
  tn_error* (*device_info)(tn_device* device, tn_device_info* info /* [out] */);

  /* (R) Memory kinds, at most 64; kind 0 is where tensors live. The array lives as long as the
   * device. */
  tn_error* (*memory_kinds)(tn_device* device, const tn_memory_kind* const** kinds /* [out] */,
                            size_t* count /* [out] */);
  /* (R) Raw memory; the host caches. bytes > 0. Fails with TN_CODE_OUT_OF_MEMORY. */
  tn_error* (*memory_alloc)(tn_device* device, uint32_t kind, uint64_t bytes,
                            void** memory /* [out] */);
  /* (R) The host frees only memory that no queued work uses. */
  void (*memory_free)(tn_device* device, uint32_t kind, void* memory, uint64_t bytes);

  /* Streams. Required without TN_DEVICE_CALLER_THREAD. A stream is used by one thread at a time. A
   * device has several: one for most work, further ones for large copies and for collectives beside
   * it, and up to 64 that users make, each created when it is first needed. Their work runs side by
   * side, in the order that stream_wait says, and no other. If one cannot be created, the call that
   * needed it fails. At exit the host waits for each, then destroys graphs, communicators, events
   * and streams, in this order, before it closes devices. */
  tn_error* (*stream_create)(tn_device* device, tn_stream** stream /* [out] */);
  void (*stream_destroy)(tn_stream* stream);

  /* Events. Required where streams are. An event that was never recorded counts as reached. */
  tn_error* (*event_create)(tn_device* device, tn_event** event /* [out] */);
  void (*event_destroy)(tn_event* event);
  tn_error* (*event_record)(tn_event* event, tn_stream* stream);
  /* Work queued on `stream` after this waits for the event, which may be of another device of the
   * same plugin. */
  tn_error* (*stream_wait)(tn_stream* stream, tn_event* event);
  /* `done` is 1 once reached, else 0. An error is that of the work before the event. */
  tn_error* (*event_query)(tn_event* event, int32_t* done /* [out] */);
  /* Blocks the calling thread until reached; errors as event_query. */
  tn_error* (*event_wait)(tn_event* event);

  /* (R) Queues a copy on a stream of `device`, or does it before returning on a caller's-thread
   * device (stream is NULL there). `device` is one of the copy's two. Host memory must stay valid
   * until the stream has passed the copy. */
  tn_error* (*copy)(tn_device* device, const tn_copy* copy, tn_stream* stream);

  /* (R) Pure: NULL where plan_create would succeed if there is memory; else TN_CODE_UNSUPPORTED
   * with the reason. [1.1] For whoever asks without wanting a plan. A host of 1.0 asks it before
   * each plan_create, a host of 1.1 only if the plugin is of 1.0. */
  tn_error* (*supports)(tn_device* device, const tn_op_request* request);
  /* (R) Nothing in `request` needs to live longer than the call. [1.1] TN_CODE_UNSUPPORTED with the
   * reason means what it means from `supports`: the next planner is asked. */
  tn_error* (*plan_create)(tn_device* device, const tn_op_request* request,
                           tn_plan** plan /* [out] */);

  /* Optional feature tables by name and version (see below), or NULL where not offered. Tables live
   * as long as the process. */
  const void* (*extension)(tn_backend* backend, const char* name, uint32_t version);

  /* Waits until no work of the plugin is running. At exit the host drains all plugins (overlays
   * first, not those of caller's-thread devices), destroys streams and what goes with them, closes
   * devices, and calls shutdown. The library is never unloaded. */
  tn_error* (*drain)(tn_backend* backend);
  void (*shutdown)(tn_backend* backend);
} tn_backend_api;

/* What a table of ABI 1.0 holds at least. The fields after it are optional, and may be left out of
 * the size too. */
#define TN_BACKEND_API_SIZE_1_0 (offsetof(tn_backend_api, extension))

/* ---- The query symbol ------------------------------------------------------------------------ */

typedef int32_t tn_plugin_kind;
enum {
  TN_PLUGIN_DEVICE = 0, /* offers devices: memory, streams, plans */
  TN_PLUGIN_OVERLAY = 1 /* offers faster plans for the devices of another plugin */
};

/* Constant data, exported under the name `tn_plugin_entry`. It repeats the manifest and must agree
 * with it: a difference in ABI, name, version or kind, or in overlays or priority of an overlay, is
 * refused. */
typedef struct tn_plugin_info {
  size_t struct_size;
  uint64_t magic; /* TN_PLUGIN_MAGIC */
  uint32_t abi_major;
  uint32_t abi_minor;
  const char* name;    /* device type: "cpu", "cuda"; for an overlay its own name */
  const char* version; /* the plugin's own, for people */
  tn_plugin_kind kind;
  const char* overlays; /* name of the plugin that an overlay lies over; NULL for a device plugin */
  int32_t priority;     /* of an overlay: the highest that offers what is asked makes the plan */
  /* Called once in a process, from one thread; again where it was out of memory
   * (TN_CODE_OUT_OF_MEMORY). `host` and what it points at live as long as the process. `api`
   * arrives zeroed except for struct_size, what the host has room for; the plugin fills no more,
   * and sets it to what it filled: copy min(api->struct_size, sizeof table) bytes of a table, then
   * set struct_size to that. */
  tn_error* (*init)(const tn_host* host, tn_backend_api* api /* [out] */);
} tn_plugin_info;

#define TN_PLUGIN_ENTRY_NAME "tn_plugin_entry"

/* Defined by every plugin. The host looks it up by name in the loaded library and never links to
 * it. */
extern TN_EXPORT const tn_plugin_info tn_plugin_entry;

/* What an entry of ABI 1.0 holds at least. */
#define TN_PLUGIN_INFO_SIZE_1_0 (offsetof(tn_plugin_info, init) + sizeof(void*))

/* ---- Extensions ------------------------------------------------------------------------------ */

#define TN_EXT_COLLECTIVES "tn.collectives"
#define TN_EXT_STREAM_CAPTURE "tn.stream_capture"
#define TN_EXT_PROFILING "tn.profiling"

typedef struct tn_communicator tn_communicator;
typedef int32_t tn_reduce_op;
enum { TN_REDUCE_SUM = 0, TN_REDUCE_MAX = 1, TN_REDUCE_MIN = 2 };

/* Collectives over the devices of one process, version 1. Member i of each array belongs to
 * devices[i] of the communicator; streams[i] is of that device.
 *
 * Order. A call queues one piece of work on every stream and returns. Member i begins once
 * streams[i] has come to it and all others have come to theirs. When streams[i] has passed it,
 * outputs[i] is there, and no other member touches devices[i]'s memory any more.
 *
 * Threads. A communicator is used by one thread at a time. As long as a call lasts (a group: from
 * group_begin to group_end), no other thread uses its streams; so two collectives always meet in
 * the same order on all the streams they share.
 *
 * Results are the same bits on all members, and in each run with the same inputs.
 *
 * Errors. TN_CODE_UNSUPPORTED for a dtype or an operation comes before anything of the call is
 * queued, and the rest of its group counts; the host then copies instead. After any other error
 * the results of the call, and of its group, are undefined. Errors that are found later are
 * reported by the streams' events.
 *
 * The host does not call these while one of the streams captures.
 */
typedef struct tn_collectives {
  size_t struct_size;
  /* `devices` are opened, at least two, each given once. TN_CODE_UNSUPPORTED or TN_CODE_UNAVAILABLE
   * with the reason where they cannot be joined; the host then copies instead and does not ask
   * again. May take seconds. */
  tn_error* (*communicator_create)(tn_backend* backend, tn_device* const* devices, size_t count,
                                   tn_communicator** communicator /* [out] */);
  /* The host has waited for all that it queued. */
  void (*communicator_destroy)(tn_communicator* communicator);
  /* In place where inputs[i] == outputs[i]; else they do not overlap. */
  tn_error* (*all_reduce)(tn_communicator* communicator, const void* const* inputs,
                          void* const* outputs, uint64_t elements, tn_dtype dtype, tn_reduce_op op,
                          tn_stream* const* streams);
  /* buffers[root] is read, the others are written. */
  tn_error* (*broadcast)(tn_communicator* communicator, void* const* buffers, uint64_t elements,
                         tn_dtype dtype, uint32_t root, tn_stream* const* streams);
  /* All calls between the two, with the same streams, are launched as one, by group_end at the
   * latest; arrays of a call need to live for that call only. Groups do not nest. group_end is
   * called after a failed call, too. */
  tn_error* (*group_begin)(tn_communicator* communicator);
  tn_error* (*group_end)(tn_communicator* communicator);
} tn_collectives;

typedef struct tn_graph tn_graph;

typedef uint32_t tn_capture_flags;
enum {
  /* plan_create may be called for the device while one of its streams captures. Where it may not,
   * the host asks its user to run the work once before. */
  TN_CAPTURE_CREATES_PLANS = 1u << 0
};

/* Recording of a stream's work for replay, version 1. From begin to end, what is queued on the
 * stream is recorded, not run. Pointers and scalars are part of the recording: the host frees none
 * of that memory before the last launch, and destroys the graph before the plans that ran.
 *
 * Only runs of plans are queued. The host neither copies nor records or waits for events on a
 * capturing stream, nor makes another stream wait for it; a plugin that is asked all the same
 * answers TN_CODE_INVALID_ARGUMENT and leaves the recording as it is.
 *
 * When begin is called, all that was queued on the stream is done. While it captures, memory_alloc,
 * memory_free, other streams of the device, and events that were recorded before go on as ever,
 * from any thread.
 */
typedef struct tn_stream_capture {
  size_t struct_size;
  /* An error leaves the stream as it was. */
  tn_error* (*begin)(tn_stream* stream);
  /* Ends the recording whatever happened in it. Where a run failed meanwhile, or cannot be
   * recorded, that error: there is no graph, nothing of the recording has run, and the stream works
   * on as before begin. */
  tn_error* (*end)(tn_stream* stream, tn_graph** graph /* [out] */);
  /* Queues the recorded work on a stream of the device it was recorded on. Launches of one graph
   * are on one stream, one after the other. Errors of the work come out of events, as those of runs
   * do; where this returns one, nothing was queued. */
  tn_error* (*launch)(tn_graph* graph, tn_stream* stream);
  /* The host has waited for its launches. */
  void (*destroy)(tn_graph* graph);
  tn_capture_flags flags;
} tn_stream_capture;

/* Names, or NULL, and times, version 1. Events made before the host asks for it need no time. */
typedef struct tn_profiling {
  size_t struct_size;
  void (*range_push)(tn_device* device, const char* name);
  void (*range_pop)(tn_device* device);
  /* Milliseconds between two events of one stream, which are reached. Any thread asks. */
  tn_error* (*elapsed)(tn_event* begin, tn_event* end, double* milliseconds /* [out] */);
} tn_profiling;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TENON_PLUGINS_ABI_ABI_H_ */
