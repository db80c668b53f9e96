#include <algorithm>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/beside.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

uint64_t bytes_of(const TensorImpl& t) { return static_cast<uint64_t>(t.numel) * size_of(t.dtype); }

bool can_be_shared(Device device) {
  const auto& context = context_of(device);
  return context.caller_thread && context.host_visible && (context.info.flags & TN_DEVICE_LOGICAL);
}

// `by` learns whether the values of a tensor were computed.
void take_over(DeviceContext& by, const TensorImpl& t) {
  const uint64_t ticket = t.storage->write_ticket.load(std::memory_order_acquire);
  by.stream->take_over(writer_of(*t.storage, ticket), ticket, t.data(), bytes_of(t));
}

bool runs_in_place(const PlanEntry& entry) {
  return entry.plan && !entry.make_contiguous && !entry.workspace_bytes && !entry.wants_versions;
}

}  // namespace

bool share_memory(std::span<const Device> devices) {
  return !check_settings().on && std::all_of(devices.begin(), devices.end(), [&](Device device) {
    return device.type_id() == devices[0].type_id() && can_be_shared(device);
  });
}

void follow(DeviceContext& by, std::span<const Device> devices) {
  for (Device device : devices) {
    DeviceStream& stream = *context_of(device).stream;
    by.stream->wait_for(stream, stream.last());
  }
}

bool accumulate_beside(DeviceContext& by, const Op& op, std::span<const Tensor> row) {
  const Tensor& sum = row[0];
  TensorImpl& to = impl_of(sum);
  for (size_t i = 1; i < row.size(); ++i) {
    const TensorImpl& from = impl_of(row[i]);
    const Tensor* inputs[] = {&sum, &row[i]};
    const Call call{op, inputs, no_attrs, {}, ~0u, &sum};
    const TensorImpl* common = common_layout(call);
    auto& entry = plans_of(by).find(call, common);
    if (!runs_in_place(entry)) return false;  // nor is any other of the row
    if (i == 1) take_over(by, to);
    take_over(by, from);
    void* pointers[] = {to.data(), from.data(), to.data()};
    const Launch launch{.plan = &entry,
                        .inputs = pointers,
                        .num_inputs = 2,
                        .outputs = pointers + 2,
                        .num_outputs = 1,
                        .scalars = nullptr,
                        .num_scalars = 0,
                        .workspace = nullptr,
                        .shape = common ? &common->shape : nullptr,
                        .spoils_in_place = true};
    recording::refuse("gradients of several devices are summed");
    const uint64_t ticket = by.stream->run(launch);
    note_read(by, *from.storage, ticket);
    if (&by.main == &to.storage->context->main)
      note_written(by, *to.storage, ticket);
    else
      to.storage->add_use(*by.stream, ticket);
    if (sync_mode()) by.stream->wait_for_call(ticket);
  }
  return true;
}

void await_beside(DeviceStream& by, const Tensor& sum) {
  auto& t = impl_of(sum);
  if (const uint64_t ticket =
          t.storage->context->stream->take_over(by, by.last(), t.data(), bytes_of(t)))
    t.storage->write_ticket.store(ticket, std::memory_order_release);
}

}  // namespace tenon
