// The functions of a plugin, called so that one which breaks the contract ends in an error that
// names it: exceptions stop here, and what a function says it has made is looked at.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tenon/core/api.h>
#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

struct BackendInfo;

// What a plugin is asked to do. Only who has to tell it asks for the text, "operator abs: (3,) on
// sim:0, module Net".
class Asked {
 public:
  virtual std::string text() const = 0;

 protected:
  ~Asked() = default;
};

// As long as it lives, this thread is inside a function of the plugin of that name. Whoever is
// there when the process ends (a plugin that calls exit) must not be waited for: it would be for
// ever. All texts have to live as long.
class InsidePlugin {
 public:
  InsidePlugin(const char* name, const char* library, const char* function,
               const Asked* asked = nullptr)
      : name_(name),
        library_(library),
        function_(function),
        asked_(asked),
        outer_(current_),
        ends_(nullptr) {
    current_ = this;
    if (auto* begins = begins_.load(std::memory_order_relaxed)) [[unlikely]]
      ends_ = begins(*this);
  }
  // Marks this thread as being in the function that another thread has entered.
  InsidePlugin(const InsidePlugin& other)
      : name_(other.name_),
        library_(other.library_),
        function_(other.function_),
        asked_(other.asked_),
        outer_(current_),
        ends_(nullptr) {
    current_ = this;
  }
  ~InsidePlugin() {
    if (ends_) [[unlikely]]
      ends_(*this);
    current_ = outer_;
  }
  InsidePlugin& operator=(const InsidePlugin&) = delete;

  const char* name() const { return name_; }
  const char* library() const { return library_; }      // its path; empty where it has none
  const char* function() const { return function_; }    // "plan_create"
  const Asked* asked() const { return asked_; }         // NULL where there is no more to say
  const InsidePlugin* outer() const { return outer_; }  // where this thread was before

  // From now on, `begins` is called before each call of a plugin, on the thread of that call, and
  // the function that it returns is called afterwards.
  using Watch = void (*)(InsidePlugin&) noexcept;
  static void watch(Watch (*begins)(InsidePlugin&) noexcept) { begins_.store(begins); }
  // What a watcher keeps of this call; without one it has no values.
  struct Note {
    InsidePlugin *previous, *next;
    std::chrono::steady_clock::time_point began;
    const char* work;
    uint32_t process;
    bool told;
  };
  union {
    Note note;
  };

  // Where this thread is, or NULL where it is in no plugin. Signal handlers may ask.
  static const InsidePlugin* current() { return current_; }
  // A description, for messages, of what this thread does in plugins. Only checked mode sets it;
  // otherwise it is NULL.
  static const char* work() { return work_; }
  // Returns the text before.
  static const char* set_work(const char* text) {
    const char* before = work_;
    work_ = text;
    return before;
  }

 private:
  const char *const name_, *const library_, *const function_;
  const Asked* const asked_;
  const InsidePlugin* const outer_;
  Watch ends_;
  TENON_API static constinit std::atomic<Watch (*)(InsidePlugin&) noexcept> begins_;
  [[gnu::tls_model(
      "initial-exec")]] TENON_API static thread_local constinit const InsidePlugin* current_;
  [[gnu::tls_model("initial-exec")]] TENON_API static thread_local constinit const char* work_;
};

// Functions have the names and arguments of tn_backend_api and answer as its do, with one
// difference: an exception, an error object that cannot be read, or a result that the contract does
// not allow is an error of code TN_CODE_INTERNAL, "plugin sim (/lib/libsim.so): event_create
// reported success, but gave no event". Functions that the plugin lacks must not be called.
class TENON_API CheckedApi {
 public:
  // `plugin` has to live as long.
  explicit CheckedApi(const BackendInfo& plugin);
  CheckedApi(const CheckedApi&) = delete;
  CheckedApi& operator=(const CheckedApi&) = delete;

  const char* name() const { return name_; }
  // The error "plugin sim (/lib/libsim.so): <function> <what>", of an error code.
  tn_error* broken(const char* function, std::string_view what,
                   tn_code code = TN_CODE_INTERNAL) const noexcept;
  // The table itself, at its current full size. Functions that the plugin does not know are NULL,
  // like functions that it does not offer, so nobody need check sizes.
  const tn_backend_api& table() const { return table_; }
  void set_table(const tn_backend_api& table) { table_ = table; }

  // At most 1024 devices: whoever lists them opens each.
  tn_error* device_count(uint32_t* count) const noexcept;
  tn_error* device_open(uint32_t index, tn_device** device) const noexcept;
  void device_close(tn_device* device) const noexcept;
  tn_error* device_info(tn_device* device, tn_device_info* info) const noexcept;

  // At least one kind, with alignments that are powers of two from 64 to 2^30 and sane granularity.
  tn_error* memory_kinds(tn_device* device, const tn_memory_kind* const** kinds,
                         size_t* count) const noexcept;
  // `alignment` is that of the kind.
  tn_error* memory_alloc(tn_device* device, uint32_t kind, uint64_t bytes, uint64_t alignment,
                         void** memory) const noexcept;
  void memory_free(tn_device* device, uint32_t kind, void* memory, uint64_t bytes) const noexcept;

  tn_error* stream_create(tn_device* device, tn_stream** stream) const noexcept;
  void stream_destroy(tn_stream* stream) const noexcept;
  tn_error* event_create(tn_device* device, tn_event** event) const noexcept;
  void event_destroy(tn_event* event) const noexcept;
  tn_error* event_record(tn_event* event, tn_stream* stream) const noexcept;
  tn_error* stream_wait(tn_stream* stream, tn_event* event) const noexcept;
  // An exception out of these says nothing of the work before the event, whose memory others will
  // get: the plugin is drained first.
  tn_error* event_query(tn_event* event, int32_t* done) const noexcept;
  tn_error* event_wait(tn_event* event) const noexcept;
  // Asks event_query until it is reached. After `seconds` the device counts as lost
  // (TN_CODE_DEVICE_LOST).
  tn_error* event_wait_at_most(tn_event* event, uint32_t seconds) const noexcept;
  // Whether event_wait_at_most() has timed out for this plugin, or rests() has returned false. Its
  // work may go on, so from then on its memory stays allocated and no function is called that may
  // wait for it:
  // memory_free, stream_destroy, event_destroy, and the functions of extension tables that destroy,
  // do nothing.
  bool hangs() const { return hangs_.load(std::memory_order_relaxed); }
  tn_error* copy(tn_device* device, const tn_copy* copy, tn_stream* stream) const noexcept;

  tn_error* supports(tn_device* device, const tn_op_request* request) const noexcept;
  // The plan can be run and destroyed, and its workspace has a size that memory might have.
  tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan,
                        const Asked* asked = nullptr) const noexcept;
  tn_error* run(tn_plan* plan, const tn_run* args, const Asked* asked = nullptr) const noexcept {
    try {
      InsidePlugin inside(name_, library_, "run", asked);
      tn_error* error = plan->run(plan, args);
      return error ? readable("run", error) : nullptr;
    } catch (...) {
      return thrown("run");
    }
  }
  void destroy(tn_plan* plan) const noexcept;

  const void* extension(const char* name, uint32_t version) const noexcept;
  tn_error* drain() const noexcept;
  // Waits with drain where no event tells when work ends. False if that is not possible: then
  // nobody knows whether work still runs, and the plugin counts as one that hangs().
  bool rests() const noexcept;
  // The error of a device of which nobody knows that.
  tn_error* without_end() const noexcept;
  void shutdown() const noexcept;

  // For functions of extension tables (checked_extensions.h); defined in checked_call.h. The first
  // two call a function that returns an error; the first then looks at what it made: `check`
  // returns what is wrong, or an empty text. The third calls one that can only succeed; what it
  // throws is logged.
  template <class Call, class Check>
  tn_error* call(const char* function, Call&& call, Check&& check,
                 const Asked* asked = nullptr) const noexcept;
  template <class Call>
  tn_error* call(const char* function, Call&& call) const noexcept;
  template <class Call>
  void call_quietly(const char* function, Call&& call) const noexcept;
  // The same for a function that gives something back which work might use.
  template <class Call>
  void release(const char* function, Call&& call) const noexcept {
    if (!hangs()) call_quietly(function, call);
  }

 private:
  tn_error* readable(const char* function, tn_error* error) const noexcept;
  tn_error* countless_details(const char* function, const tn_error& error) const noexcept;
  // Inside a catch block: the error of what was caught.
  tn_error* thrown(const char* function) const noexcept;
  template <class Ask, class Check>
  tn_error* ask_event(const char* function, Ask&& ask, Check&& check) const noexcept;
  static tn_error* endless(tn_error* error) noexcept;
  tn_error* checked(const char* function, const std::string& fault) const noexcept;
  void log_thrown(const char* function) const noexcept;
  static tn_error* no_memory_to_say_how();

  const BackendInfo& plugin_;
  const char *const name_, *const library_;
  tn_backend_api table_{};
  mutable std::atomic<bool> hangs_{false};
};

}  // namespace tenon::plugins
