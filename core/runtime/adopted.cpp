#include <memory>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/runtime/adopted.h>
#include <tenon/core/runtime/allocator.h>
#include <tenon/core/runtime/context.h>

namespace tenon {

namespace {

// Exceptions of the deleter are logged, because it runs in a destructor.
void call(const AdoptedMemory& memory) noexcept {
  if (!memory.release) return;
  std::string reason = "an exception that is no std::exception";
  try {
    return memory.release();
  } catch (const std::exception& e) {
    reason = e.what();
  } catch (...) {
  }
  log_message(TN_LOG_ERROR, "tenon",
              "the deleter of memory that a tensor used (from_blob, from_dlpack) threw: " + reason);
}

}  // namespace

Ref<Storage> adopt_memory(DeviceContext& context, void* data, uint64_t bytes) {
  recording::refuse("memory of the program becomes a tensor");
  auto owner = std::make_unique<AdoptedMemory>();
  auto storage = Ref<Storage>::adopt(new Storage);
  auto& s = *storage;
  s.context = &context;
  s.data = bytes ? data : nullptr;
  s.bytes = s.block_bytes = bytes;
  s.allocator = context.memory.get();  // keeps the uses by other streams
  // The values are the user's, so an old failure at this address does not matter any more.
  if (bytes && context.stream->failures.any()) context.stream->failures.clear_poison(data, bytes);
  s.slot = Storage::kAdopted;
  s.owner = owner.release();
  return storage;
}

void wait_until_unused(Storage& s) {
  if (!s.data) return;
  DeviceStream& stream = *s.context->stream;
  if (!stream.closed()) stream.wait(stream.last());
  for (Storage::Use use; s.allocator->next_use(s, use); s.allocator->end_use(s, use))
    if (!use.stream->closed()) use.stream->wait(use.ticket);
}

void end_adopted(Storage* s) noexcept {
  const std::unique_ptr<AdoptedMemory> memory(s->owner);
  try {
    wait_until_unused(*s);
    auto& failures = s->context->stream->failures;
    if (s->data && failures.any()) failures.clear_poison(s->data, s->bytes);
  } catch (const std::exception& e) {
    // The memory may still be written, so it must not be given back: it is better lost.
    return log_message(TN_LOG_ERROR, "tenon",
                       fmt::format("memory of {} bytes that a tensor used is not given back, "
                                   "because the work that uses it did not end: {}",
                                   s->bytes, e.what()));
  }
  delete s;
  call(*memory);
}

}  // namespace tenon
