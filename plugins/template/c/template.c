/* The smallest complete Tenon backend: one logical device in host memory with five f32 operators.
 * Copy the folder, rename, and replace the kernels. docs/plugins.md explains every step; abi.h is
 * the contract. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenon/plugins/abi/abi.h>

static const tn_host* host; /* set once by init, before any other call */

/* ---- Errors: an object with its text behind it -----------------------------------------------
 * A text says what was asked and what was found. The host puts the operator, its shapes and the
 * plugin before it. */

typedef struct error_object {
  tn_error head;
  char text[256];
} error_object;

static void destroy_error(tn_error* self) { free(self); }
static void keep_error(tn_error* self) { (void)self; }
static tn_error no_memory = {sizeof(tn_error), TN_CODE_OUT_OF_MEMORY, "out of host memory", 0, NULL,
                             keep_error};

static tn_error* fail(tn_code code, const char* format, ...) {
  error_object* e = malloc(sizeof *e);
  if (!e) return &no_memory;
  va_list args;
  va_start(args, format);
  vsnprintf(e->text, sizeof e->text, format, args);
  va_end(args);
  e->head = (tn_error){sizeof(tn_error), code, e->text, 0, NULL, destroy_error};
  return &e->head;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static int64_t elements(const tn_tensor_desc* d) {
  int64_t n = 1;
  for (uint32_t i = 0; i < d->rank; ++i) n *= d->shape[i];
  return n;
}

/* Where the i-th element in row-major order lies. Simple and slow: a real backend walks contiguous
 * runs. */
static int64_t offset_of(const tn_tensor_desc* d, int64_t i) {
  int64_t offset = 0;
  for (uint32_t k = d->rank; k-- > 0; i /= d->shape[k]) offset += i % d->shape[k] * d->strides[k];
  return offset;
}

static int same_shape(const tn_tensor_desc* a, const tn_tensor_desc* b) {
  if (a->rank != b->rank) return 0;
  for (uint32_t i = 0; i < a->rank; ++i)
    if (a->shape[i] != b->shape[i]) return 0;
  return 1;
}

/* ---- Plans: what is known when the plan is made stays on it ---------------------------------- */

typedef struct plan plan;
typedef void (*kernel)(const plan* p, const tn_run* run, int64_t begin, int64_t end);

struct plan {
  tn_plan head; /* first, so that a tn_plan* is a plan* */
  kernel work;
  int64_t n;     /* parts that may run in parallel: elements, or rows of a matrix product */
  int64_t grain; /* of these, at least so many to a thread */
  int has_b;
  tn_tensor_desc a, b, y;
};

static void fill(const plan* p, const tn_run* run, int64_t begin, int64_t end) {
  float* y = run->outputs[0];
  for (int64_t i = begin; i < end; ++i) y[offset_of(&p->y, i)] = (float)run->scalars[0].f;
}

static void copy(const plan* p, const tn_run* run, int64_t begin, int64_t end) {
  const float* x = run->inputs[0];
  float* y = run->outputs[0];
  for (int64_t i = begin; i < end; ++i) y[offset_of(&p->y, i)] = x[offset_of(&p->a, i)];
}

/* The second operand is a tensor, or a scalar where that is absent. The attribute `reverse` changes
 * nothing in a sum or product. */
static float operand_b(const plan* p, const tn_run* run, int64_t i) {
  return p->has_b ? ((const float*)run->inputs[1])[offset_of(&p->b, i)] : (float)run->scalars[0].f;
}

static void add(const plan* p, const tn_run* run, int64_t begin, int64_t end) {
  const float* a = run->inputs[0];
  float* y = run->outputs[0];
  for (int64_t i = begin; i < end; ++i)
    y[offset_of(&p->y, i)] = a[offset_of(&p->a, i)] + operand_b(p, run, i);
}

static void mul(const plan* p, const tn_run* run, int64_t begin, int64_t end) {
  const float* a = run->inputs[0];
  float* y = run->outputs[0];
  for (int64_t i = begin; i < end; ++i)
    y[offset_of(&p->y, i)] = a[offset_of(&p->a, i)] * operand_b(p, run, i);
}

/* Rows [begin, end) of all batches together. */
static void matmul(const plan* p, const tn_run* run, int64_t begin, int64_t end) {
  uint32_t r = p->y.rank;
  int64_t m = p->y.shape[r - 2], n = p->y.shape[r - 1], k = p->a.shape[r - 1];
  for (int64_t row = begin; row < end; ++row) {
    int64_t batch = row / m, oa = row % m * p->a.strides[r - 2], ob = 0,
            oy = row % m * p->y.strides[r - 2];
    for (uint32_t d = r - 2; d-- > 0; batch /= p->y.shape[d]) {
      int64_t i = batch % p->y.shape[d];
      oa += i * p->a.strides[d], ob += i * p->b.strides[d], oy += i * p->y.strides[d];
    }
    for (int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i)
        sum +=
            ((const float*)run->inputs[0])[oa + i * p->a.strides[r - 1]] *
            ((const float*)run->inputs[1])[ob + i * p->b.strides[r - 2] + j * p->b.strides[r - 1]];
      ((float*)run->outputs[0])[oy + j * p->y.strides[r - 1]] = sum;
    }
  }
}

typedef struct loop {
  const plan* p;
  const tn_run* run;
} loop;

static void loop_body(void* context, int64_t begin, int64_t end, uint32_t slot) {
  const loop* l = context;
  (void)slot; /* would pick this thread's share of the workspace */
  l->p->work(l->p, l->run, begin, end);
}

static tn_error* plan_run(tn_plan* self, const tn_run* run) {
  const plan* p = (const plan*)self;
  loop l = {p, run};
  if (p->n > 0) host->parallel_for(host->context, p->n, p->grain, loop_body, &l);
  return NULL;
}

static void plan_destroy(tn_plan* self) { free(self); }

/* ---- What is supported: one function answers `supports` and prepares plans ------------------- */

typedef enum op_form { FORM_FILL, FORM_COPY, FORM_BINARY, FORM_MATMUL } op_form;

static const struct {
  const char* name;
  op_form form;
  kernel work;
  const char* attr; /* the only attribute that it knows, or NULL */
} ops[] = {{"fill", FORM_FILL, fill, NULL},
           {"copy", FORM_COPY, copy, NULL},
           {"add", FORM_BINARY, add, "reverse"},
           {"mul", FORM_BINARY, mul, "reverse"},
           {"matmul", FORM_MATMUL, matmul, NULL}};

static int matrices_fit(const tn_tensor_desc* a, const tn_tensor_desc* b, const tn_tensor_desc* y) {
  uint32_t r = y->rank;
  if (r < 2 || a->rank != r || b->rank != r) return 0;
  for (uint32_t d = 0; d + 2 < r; ++d)
    if (a->shape[d] != y->shape[d] || b->shape[d] != y->shape[d]) return 0;
  return a->shape[r - 2] == y->shape[r - 2] && b->shape[r - 1] == y->shape[r - 1] &&
         a->shape[r - 1] == b->shape[r - 2];
}

static tn_error* require_f32(const tn_op_request* request) {
  for (size_t i = 0; i < request->num_inputs + request->num_outputs; ++i) {
    const tn_tensor_desc* d =
        i < request->num_inputs ? request->inputs[i] : request->outputs[i - request->num_inputs];
    if (d && d->dtype != TN_F32) return fail(TN_CODE_UNSUPPORTED, "computes in f32 only");
  }
  return NULL;
}

static tn_error* prepare(const tn_op_request* request, plan* p) {
  size_t o = 0;
  while (o < sizeof ops / sizeof *ops && strcmp(ops[o].name, request->op) != 0) ++o;
  if (o == sizeof ops / sizeof *ops) return fail(TN_CODE_UNSUPPORTED, "no such operator");
  /* With an attribute of its own, a newer core asks for something else. */
  for (size_t i = 0; i < request->num_attrs; ++i)
    if (!ops[o].attr || strcmp(request->attrs[i]->name, ops[o].attr) != 0)
      return fail(TN_CODE_UNSUPPORTED, "an attribute is not known");
  tn_error* error = require_f32(request);
  if (error) return error;

  op_form form = ops[o].form;
  const tn_tensor_desc* a = request->num_inputs > 0 ? request->inputs[0] : NULL;
  const tn_tensor_desc* b = request->num_inputs > 1 ? request->inputs[1] : NULL;
  const tn_tensor_desc* y = request->num_outputs > 0 ? request->outputs[0] : NULL;
  size_t scalars = form == FORM_FILL || (form == FORM_BINARY && !b) ? 1 : 0;
  if (!y || (form != FORM_FILL && !a) || (form == FORM_MATMUL && !b) ||
      request->num_scalars < scalars)
    return fail(TN_CODE_INVALID_ARGUMENT, "an operand is missing");
  int fits = form == FORM_MATMUL
                 ? matrices_fit(a, b, y)
                 : form == FORM_FILL ||
                       (same_shape(a, y) && (form != FORM_BINARY || !b || same_shape(b, y)));
  if (!fits) return fail(TN_CODE_INVALID_ARGUMENT, "the shapes of operands and result do not fit");

  *p = (plan){.head = {.struct_size = sizeof(tn_plan), .run = plan_run, .destroy = plan_destroy},
              .work = ops[o].work,
              .has_b = b != NULL,
              .y = *y};
  if (a) p->a = *a;
  if (b) p->b = *b;
  int64_t n = elements(y);
  p->n = form == FORM_MATMUL && n > 0 ? n / y->shape[y->rank - 1] : n;
  p->grain = form == FORM_MATMUL ? 8 : 4096;
  p->head.cost_ns = (uint64_t)n * (form == FORM_MATMUL ? 1 + (uint64_t)a->shape[a->rank - 1] : 5);
  return NULL;
}

static tn_error* supports(tn_device* device, const tn_op_request* request) {
  plan scratch;
  (void)device;
  return prepare(request, &scratch);
}

static tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** out) {
  (void)device;
  plan* p = malloc(sizeof *p);
  if (!p) return &no_memory;
  tn_error* error = prepare(request, p);
  if (error) {
    free(p);
    return error;
  }
  *out = &p->head;
  return NULL;
}

/* ---- Devices and memory ---------------------------------------------------------------------- */

struct tn_device {
  uint32_t index;
};

static tn_error* device_count(tn_backend* backend, uint32_t* count) {
  (void)backend;
  *count = 1;
  return NULL;
}

static tn_error* device_open(tn_backend* backend, uint32_t index, tn_device** device) {
  (void)backend;
  tn_device* d = malloc(sizeof *d);
  if (!d) return &no_memory;
  d->index = index;
  *device = d;
  return NULL;
}

static void device_close(tn_device* device) { free(device); }

static tn_error* device_info(tn_device* device, tn_device_info* info) {
  tn_device_info mine = {.struct_size = info->struct_size,
                         .flags = TN_DEVICE_CALLER_THREAD | TN_DEVICE_LOGICAL};
  snprintf(mine.name, sizeof mine.name, "template device %u", (unsigned)device->index);
  mine.threads = host->thread_count(host->context);
  memcpy(info, &mine, info->struct_size < sizeof mine ? info->struct_size : sizeof mine);
  return NULL;
}

static const tn_memory_kind host_memory = {.struct_size = sizeof(tn_memory_kind),
                                           .name = "host",
                                           .flags = TN_MEMORY_HOST_VISIBLE | TN_MEMORY_DEVICE_LOCAL,
                                           .alignment = 64};
static const tn_memory_kind* const kinds_table[] = {&host_memory};

static tn_error* memory_kinds(tn_device* device, const tn_memory_kind* const** kinds,
                              size_t* count) {
  (void)device;
  *kinds = kinds_table;
  *count = 1;
  return NULL;
}

static tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, void** memory) {
  (void)device, (void)kind;
  void* p = bytes <= SIZE_MAX - 63 ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;
  if (!p)
    return fail(TN_CODE_OUT_OF_MEMORY, "%llu bytes of host memory cannot be allocated",
                (unsigned long long)bytes);
  *memory = p;
  return NULL;
}

static void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes) {
  (void)device, (void)kind, (void)bytes;
  free(memory);
}

static tn_error* copy_bytes(tn_device* device, const tn_copy* c, tn_stream* stream) {
  (void)device, (void)stream;
  if (c->bytes > 0) memcpy(c->dst, c->src, (size_t)c->bytes);
  return NULL;
}

/* ---- The way in ------------------------------------------------------------------------------ */

static tn_error* init(const tn_host* services, tn_backend_api* api) {
  static const tn_backend_api table = {.device_count = device_count,
                                       .device_open = device_open,
                                       .device_close = device_close,
                                       .device_info = device_info,
                                       .memory_kinds = memory_kinds,
                                       .memory_alloc = memory_alloc,
                                       .memory_free = memory_free,
                                       .copy = copy_bytes,
                                       .supports = supports,
                                       .plan_create = plan_create};
  host = services;
  /* The host may be older and have room for less. */
  size_t size = api->struct_size < sizeof table ? api->struct_size : sizeof table;
  memcpy(api, &table, size);
  api->struct_size = size;
  return NULL;
}

const tn_plugin_info tn_plugin_entry = {.struct_size = sizeof(tn_plugin_info),
                                        .magic = TN_PLUGIN_MAGIC,
                                        .abi_major = TN_ABI_MAJOR,
                                        .abi_minor = TN_ABI_MINOR,
                                        .name = "template",
                                        .version = "1.0",
                                        .kind = TN_PLUGIN_DEVICE,
                                        .init = init};
