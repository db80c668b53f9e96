// Header-only help for plugin authors: errors, requests, plans and a kernel registry over the C
// ABI. Nothing here is required; a plugin in plain C includes abi.h alone. No function lets an
// exception cross the boundary: wrap each entry point in `guard`.
#pragma once

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/sdk/text.h>

// Hidden, or the dynamic linker would give two plugins of one process the same kernel table.
#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Pairs of key and value that an error carries (tn_error.details).
using Details = std::vector<std::pair<std::string, std::string>>;

// The exception that kernel code throws; `guard` turns it into a tn_error.
class Error : public std::exception {
 public:
  // Makes an error of a code, a text and details.
  Error(tn_code code, std::string message, Details details = {})
      : code_(code), message_(std::move(message)), details_(std::move(details)) {}
  // Returns the text.
  const char* what() const noexcept override { return message_.c_str(); }
  // Returns the code.
  tn_code code() const { return code_; }
  // Returns the details.
  const Details& details() const { return details_; }

 private:
  tn_code code_;
  std::string message_;
  Details details_;
};

// Throw an Error with TN_CODE_UNSUPPORTED, for what another plugin may be able to do. `why` is a
// text, or a format with values (see text.h).
[[noreturn]] inline void unsupported(std::string why) {
  throw Error(TN_CODE_UNSUPPORTED, std::move(why));
}
template <class Value, class... Values>
[[noreturn]] void unsupported(
    TextFormat<std::type_identity_t<Value>, std::type_identity_t<Values>...> why,
    const Value& value, const Values&... values) {
  unsupported(text<Value, Values...>(why, value, values...));
}

namespace detail {
struct OwnedError {
  tn_error head;
  std::string message;
  Details details;
  std::vector<tn_key_value> table;
};
// Is returned where even the error object cannot be allocated.
inline tn_error out_of_memory_error{
    sizeof(tn_error), TN_CODE_OUT_OF_MEMORY, "out of host memory", 0, nullptr, [](tn_error*) {}};
}  // namespace detail

// Makes an error object for the host, which destroys it. Details are taken by reference: a copy for
// the call would be made by the caller, where running out of memory ends the process.
inline tn_error* make_error(tn_code code, std::string_view message,
                            const Details& details = {}) noexcept {
  try {
    std::unique_ptr<detail::OwnedError> e(
        new detail::OwnedError{{}, std::string(message), details, {}});
    for (auto& [k, v] : e->details) e->table.push_back({k.c_str(), v.c_str()});
    e->head = {sizeof(tn_error),
               code,
               e->message.c_str(),
               e->table.size(),
               e->table.empty() ? nullptr : e->table.data(),
               [](tn_error* self) { delete reinterpret_cast<detail::OwnedError*>(self); }};
    return &e.release()->head;
  } catch (...) {
    return &detail::out_of_memory_error;
  }
}

namespace detail {
inline Details details_of(const tn_error& e) {
  Details details;
  auto text = [](const char* s) { return s ? s : "?"; };
  for (size_t i = 0; e.details && i < e.num_details; ++i)
    details.emplace_back(text(e.details[i].key), text(e.details[i].value));
  return details;
}
inline const char* message_of(const tn_error& e) { return e.message ? e.message : ""; }
}  // namespace detail

// Runs `body` and returns whatever it throws as an error object, or NULL. What is no sdk::Error
// becomes TN_CODE_INTERNAL, and std::bad_alloc TN_CODE_OUT_OF_MEMORY.
template <class F>
tn_error* guard(F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& e) {
    return make_error(e.code(), e.what(), e.details());
  } catch (const std::bad_alloc&) {
    return &detail::out_of_memory_error;
  } catch (const std::exception& e) {
    return make_error(TN_CODE_INTERNAL, e.what());
  } catch (...) {
    return make_error(TN_CODE_INTERNAL, "an exception of unknown type");
  }
}

// Returns a new error object that says what `e` says.
inline tn_error* copy_error(const tn_error& e) noexcept {
  tn_error* copy = nullptr;
  tn_error* none =
      guard([&] { copy = make_error(e.code, detail::message_of(e), detail::details_of(e)); });
  return none ? none : copy;
}

// Destroys `e` and throws what it said, with those of the details `more` that it did not have.
[[noreturn]] inline void throw_error(tn_error* e, const Details& more = {}) {
  const std::unique_ptr<tn_error, void (*)(tn_error*)> owned(e, e->destroy);
  Details details = detail::details_of(*e);
  for (auto& one : more)
    if (std::none_of(details.begin(), details.end(), [&](auto& d) { return d.first == one.first; }))
      details.push_back(one);
  throw Error(e->code, detail::message_of(*e), std::move(details));
}

// Returns the number of elements of a tensor.
inline int64_t numel(const tn_tensor_desc& d) {
  int64_t n = 1;
  for (uint32_t i = 0; i < d.rank; ++i) n *= d.shape[i];
  return n;
}

// Returns whether a tensor is row-major without gaps. Dimensions of size 1 may have any stride; so
// may everything in an empty tensor.
inline bool is_contiguous(const tn_tensor_desc& d) {
  int64_t expected = 1;
  for (uint32_t i = d.rank; i-- > 0;) {
    if (d.shape[i] == 0) return true;
    if (d.shape[i] != 1 && d.strides[i] != expected) return false;
    expected *= d.shape[i];
  }
  return true;
}

// Returns the size of an element in bytes; 0 for a dtype that is not known.
inline size_t dtype_size(tn_dtype t) {
  constexpr size_t sizes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return t >= 0 && t <= TN_BOOL ? sizes[t] : 0;
}

// Returns "f32", "f64", …, "bool"; "?" for a dtype that is not known.
inline const char* dtype_name(tn_dtype t) {
  constexpr const char* names[] = {"f32", "f64", "f16", "bf16", "i64", "i32", "u8", "bool"};
  return t >= 0 && t <= TN_BOOL ? names[t] : "?";
}

// Gives checked access to a tn_op_request, which has to outlive it. What is missing is a
// TN_CODE_INVALID_ARGUMENT, never a crash.
class Request {
 public:
  // Takes a request of the host.
  explicit Request(const tn_op_request& raw) : raw_(raw) {}
  // Returns the name of the operator.
  std::string_view op() const { return raw_.op; }
  // Returns the number of inputs, absent ones included.
  size_t num_inputs() const { return raw_.num_inputs; }
  // Returns the number of outputs, absent ones included.
  size_t num_outputs() const { return raw_.num_outputs; }
  // Returns how many scalars each run will have.
  size_t num_scalars() const { return raw_.num_scalars; }
  // Returns whether an input is there.
  bool has_input(size_t i) const { return i < raw_.num_inputs && raw_.inputs[i]; }
  // Returns whether an output is wanted.
  bool has_output(size_t i) const { return i < raw_.num_outputs && raw_.outputs[i]; }
  // Returns the descriptor of an input, or throws if it is absent.
  const tn_tensor_desc& input(size_t i) const {
    return required(has_input(i) ? raw_.inputs[i] : nullptr, "input", i);
  }
  // Returns the descriptor of an output, or throws if it is absent.
  const tn_tensor_desc& output(size_t i) const {
    return required(has_output(i) ? raw_.outputs[i] : nullptr, "output", i);
  }
  // Returns the input in whose memory an output lies, or -1.
  int32_t alias(size_t output) const {
    return raw_.aliases && output < raw_.num_outputs ? raw_.aliases[output] : -1;
  }

  // Returns an attribute, or NULL if there is none of this name.
  const tn_attr* find(std::string_view name) const {
    for (size_t i = 0; i < raw_.num_attrs; ++i)
      if (name == raw_.attrs[i]->name) {
        if (i < 64) read_ |= uint64_t{1} << i;
        return raw_.attrs[i];
      }
    return nullptr;
  }
  // Returns the name of an attribute that nobody has looked for, or NULL: one of a newer core,
  // which means something that this plugin does not do.
  const char* unread() const {
    for (size_t i = 0; i < raw_.num_attrs; ++i)
      if (i >= 64 || !(read_ >> i & 1)) return raw_.attrs[i]->name;
    return nullptr;
  }
  // Returns an integer, or throws if the attribute is missing or of another kind, as all of these
  // do.
  int64_t get_int(std::string_view name) const { return attr(name, TN_ATTR_INT).i; }
  // Returns a number of floating point.
  double get_float(std::string_view name) const { return attr(name, TN_ATTR_FLOAT).f; }
  // Returns a bool.
  bool get_bool(std::string_view name) const { return attr(name, TN_ATTR_BOOL).i != 0; }
  // Returns a text, which lives as long as the request.
  std::string_view get_string(std::string_view name) const { return attr(name, TN_ATTR_STRING).s; }
  // Returns a list of integers.
  std::vector<int64_t> get_ints(std::string_view name) const {
    auto& a = attr(name, TN_ATTR_INTS);
    return {a.ints, a.ints + a.num_ints};
  }
  // Returns a bool, or `otherwise` if the attribute is missing.
  bool get_bool(std::string_view name, bool otherwise) const {
    return find(name) ? get_bool(name) : otherwise;
  }

 private:
  const tn_tensor_desc& required(const tn_tensor_desc* d, const char* what, size_t i) const {
    if (!d) throw Error(TN_CODE_INVALID_ARGUMENT, text("{} {} is missing", what, i));
    return *d;
  }
  const tn_attr& attr(std::string_view name, tn_attr_kind kind) const {
    auto* a = find(name);
    if (!a || a->kind != kind)
      throw Error(TN_CODE_INVALID_ARGUMENT,
                  text("attribute \"{}\" is missing or of another kind", name));
    return *a;
  }
  const tn_op_request& raw_;
  mutable uint64_t read_ = 0;  // bit i: attribute i was looked for
};

// Holds what the host has to know of a plan: bytes of workspace for each run, an estimate of a
// run's time in nanoseconds (0 if there is none), and the flags TN_PLAN_*.
struct PlanOptions {
  uint64_t workspace_bytes = 0;
  uint64_t cost_ns = 0;
  tn_plan_flags flags = 0;
};

// Returns the version of an input (tn_run.input_versions); 0 where nothing is known of it, as under
// a host older than ABI 1.2.
inline uint64_t input_version(const tn_run& run, size_t input) {
  return TN_HAS(tn_run, &run, input_versions) && run.input_versions ? run.input_versions[input] : 0;
}

// Makes a plan whose run is a C++ callable `void(const tn_run&)`, which may throw and owns whatever
// was prepared.
template <class F>
tn_plan* make_plan(F body, PlanOptions options = {}) {
  struct Plan {
    tn_plan head;
    F body;
  };
  auto run = [](tn_plan* self, const tn_run* args) -> tn_error* {
    return guard([&] { reinterpret_cast<Plan*>(self)->body(*args); });
  };
  auto destroy = [](tn_plan* self) { delete reinterpret_cast<Plan*>(self); };
  auto* plan = new Plan{
      {sizeof(tn_plan), run, destroy, options.workspace_bytes, options.cost_ns, options.flags},
      std::move(body)};
  return &plan->head;
}

// Makes a plan of a kernel, or throws TN_CODE_UNSUPPORTED with the reason if it cannot. It never
// returns NULL, which would give no reason.
using Factory = tn_plan* (*)(tn_device* device, const Request& request);

// Registers the kernel of a file: `static const Kernel registration({"exp", "log"}, make_unary);`.
// There is no central list, and it allocates no memory: what a library throws while it is loaded
// leaves the dynamic linker half done.
class Kernel {
 public:
  // Registers `factory` for at most 40 operators.
  template <size_t N>
  Kernel(const char* const (&ops)[N], Factory factory)
      : count_(N), factory_(factory), next_(first_) {
    static_assert(N <= kMaxOps, "so many operators need two registrations");
    for (size_t i = 0; i < N; ++i) ops_[i] = ops[i];
    first_ = this;
  }
  // Registers `factory` for the operators that the entries of a table name, `entry.op` each.
  template <class Entry, size_t N>
    requires requires(const Entry& entry) { std::string_view(entry.op); }
  Kernel(const Entry (&table)[N], Factory factory) : count_(N), factory_(factory), next_(first_) {
    static_assert(N <= kMaxOps, "so many operators need two registrations");
    for (size_t i = 0; i < N; ++i) ops_[i] = table[i].op;
    first_ = this;
  }
  Kernel(const Kernel&) = delete;

  // Returns the factory that is registered for an operator, or NULL.
  static Factory find(std::string_view op) {
    for (auto* k = first_; k; k = k->next_)
      for (size_t i = 0; i < k->count_; ++i)
        if (op == k->ops_[i]) return k->factory_;
    return nullptr;
  }

  // Returns an operator that has two kernels, or NULL.
  static const char* registered_twice() {
    for (auto* k = first_; k; k = k->next_)
      for (size_t i = 0; i < k->count_; ++i)
        if (k->among(i + 1, k->ops_[i])) return k->ops_[i];
    return nullptr;
  }

 private:
  // Returns whether `op` is among the operators from number `from` on, or among those of later
  // kernels.
  bool among(size_t from, std::string_view op) const {
    for (auto* k = this; k; k = k->next_, from = 0)
      for (size_t i = from; i < k->count_; ++i)
        if (op == k->ops_[i]) return true;
    return false;
  }

  static constexpr size_t kMaxOps = 40;
  const char* ops_[kMaxOps] = {};
  const size_t count_;
  const Factory factory_;
  const Kernel* const next_;
  static inline constinit const Kernel* first_ = nullptr;
};

// Returns a plan of the kernel that is registered for the operator. Throws TN_CODE_UNSUPPORTED if
// there is none, or if the request has an attribute that the kernel has not looked for; and what
// the kernel throws.
inline tn_plan* create_plan(tn_device* device, const tn_op_request& raw) {
  auto factory = Kernel::find(raw.op);
  if (!factory) unsupported("no kernel for operator \"" + std::string(raw.op) + "\"");
  const Request request(raw);
  tn_plan* plan = factory(device, request);
  if (!plan)
    throw Error(TN_CODE_INTERNAL,
                "its kernel's factory returned no plan and no reason; a factory that cannot make a "
                "plan throws the reason, as sdk::unsupported does");
  if (const char* name = request.unread()) {
    plan->destroy(plan);
    unsupported("attribute \"{}\" is not known to this plugin", name);
  }
  return plan;
}

// A `supports` that cannot disagree with plan_create: it makes a plan and destroys it. Hosts of ABI
// 1.1 plan without asking it.
inline tn_error* supports_by_creating(tn_device* device, const tn_op_request* raw) noexcept {
  return guard([&] {
    auto* plan = create_plan(device, *raw);
    plan->destroy(plan);
  });
}

// Splits [0, n) over the shared threads, into parts of at least `grain` unless n is smaller.
// `body(begin, end, slot)` may throw, and the first exception comes out here.
template <class F>
void parallel_for(const tn_host& host, int64_t n, int64_t grain, F&& body) {
  struct Context {
    F& body;
    tn_error* first_error;
  };
  if (n <= 0) return;
  if (n <= grain) return body(int64_t{0}, n, uint32_t{0});
  Context context{body, nullptr};
  host.parallel_for(
      host.context, n, grain,
      [](void* c, int64_t begin, int64_t end, uint32_t slot) {
        auto& ctx = *static_cast<Context*>(c);
        tn_error* e = guard([&] { ctx.body(begin, end, slot); });
        if (!e) return;
        tn_error* none = nullptr;
        if (!__atomic_compare_exchange_n(&ctx.first_error, &none, e, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
          e->destroy(e);
      },
      &context);
  if (context.first_error) throw_error(context.first_error);
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
