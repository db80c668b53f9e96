#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/check/arguments.h>
#include <tenon/core/runtime/check/elements.h>
#include <tenon/core/runtime/check/run.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/plugins/host/backend.h>

namespace tenon::checked {

RunCheck::RunCheck(const Launch& l, const PathNode* path, tn_stream* stream)
    : launch_(l),
      path_(path),
      stream_(stream),
      context_(*l.plan->context),
      memory_(context_.memory->checked()) {
  auto add = [](std::vector<Operand>& to, const char* kind, uint32_t i, void* data,
                const Footprint& footprint, DType type, bool in_place) {
    if (data && footprint.run)
      to.push_back(
          {static_cast<char*>(data), &footprint, type, fmt::format("{} {}", kind, i), in_place});
  };
  for (uint32_t i = 0; i < l.num_inputs; ++i)
    add(inputs_, "input", i, l.inputs[i], l.plan->read[i], l.plan->read_types[i], false);
  for (uint32_t i = 0; i < l.num_outputs; ++i)
    add(outputs_, "output", i, l.outputs[i], l.plan->written[i], l.plan->written_types[i],
        l.plan->in_place[i]);
}

// A recorded plan does not run, and its memory must not be touched during the recording.
bool RunCheck::skipped() const { return !memory_ || context_.stream->capturing(); }

// Looks at the guards of all buffers of the run, and calls `visit` with the name of each that is
// spoilt, and what was written there.
template <class F>
void RunCheck::each_spoilt(F&& visit) {
  std::vector<const void*> addresses;
  std::vector<std::string> names;
  for (auto* operands : {&outputs_, &inputs_})
    for (auto& o : *operands) {
      addresses.push_back(o.data);
      names.push_back(o.name);
    }
  if (launch_.workspace) {
    addresses.push_back(launch_.workspace);
    names.push_back("its workspace");
  }
  const auto spoilt = memory_->spoilt_guards(addresses);
  for (size_t i = 0; i < spoilt.size(); ++i)
    if (!spoilt[i].empty()) visit(names[i], spoilt[i]);
}

// ---- before ----

void RunCheck::label_operands() {
  if (!memory_) return;
  const auto owner = launch_.plan->describe(launch_.shape);
  for (auto& o : outputs_) memory_->label(o.data, o.name + " of " + owner);
  if (launch_.workspace) memory_->label(launch_.workspace, "the workspace of " + owner);
}

tn_error* RunCheck::before() {
  if (skipped()) return label_operands(), nullptr;
  if (tn_error* lost = memory_->finish_earlier(stream_)) return lost;
  label_operands();
  const auto owner = launch_.plan->describe(launch_.shape);
  each_spoilt([&](const std::string& name, const std::string& what) {
    memory_->report(
        fmt::format("something wrote outside of {}, before {}: {}. Look at the copies "
                    "and operators before it",
                    name, owner, what));
  });
  // A scalar may be an integer that looks like a NaN; then less is looked at.
  for (uint32_t i = 0; i < launch_.num_scalars; ++i)
    inputs_had_nan_ = inputs_had_nan_ || std::isnan(launch_.scalars[i].f);
  Room room;
  for (auto& input : inputs_) {
    const auto* bytes = fetch(input, room);
    if (!bytes) continue;
    if (!overlaps_an_output(input)) {
      input.hash = hash_of(bytes, *input.footprint);
      input.hashed = true;
    }
    if (check_settings().nan && !inputs_had_nan_)
      inputs_had_nan_ = first_nan(bytes, *input.footprint, input.type).has_value();
  }
  fill_outputs(unwritten_);
  return nullptr;
}

void RunCheck::fill_outputs(Pattern pattern) {
  for (auto& o : outputs_)
    if (!o.in_place) fill(o, pattern);
}

// Only the elements are filled, not the gaps between them.
void RunCheck::fill(const Operand& o, Pattern pattern) {
  if (o.footprint->axes.empty()) {
    memory_->fill(o.data, o.footprint->run, pattern);
    return;
  }
  Room room;
  auto* bytes = fetch(o, room);
  if (!bytes) return;
  auto fill_run = [&](const char* at) {
    const auto offset = at - reinterpret_cast<const char*>(bytes);
    checked::fill(bytes + offset, o.footprint->run, pattern,
                  reinterpret_cast<uintptr_t>(o.data + offset));
    return false;
  };
  any_run(reinterpret_cast<const char*>(bytes), *o.footprint, fill_run);
  const Piece piece{bytes, o.data, o.footprint->span()};
  memory_->access().write({&piece, 1});
}

// Returns where the host can read the bytes of an operand, which may be in `room`; null if the
// device does not copy them.
unsigned char* RunCheck::fetch(const Operand& o, Room& room) {
  if (memory_->access().host_visible) return reinterpret_cast<unsigned char*>(o.data);
  room.resize(o.footprint->span());
  const Piece piece{room.data(), o.data, room.size()};
  return memory_->access().read({&piece, 1}) ? room.data() : nullptr;
}

bool RunCheck::overlaps_an_output(const Operand& input) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const Operand& o) {
    return input.data < o.data + o.footprint->span() &&
           o.data < input.data + input.footprint->span();
  });
}

// ---- after ----

tn_error* RunCheck::after(tn_error* error) {
  if (skipped() || !memory_->finish(error, stream_)) return error;
  look_at_guards();
  look_at_inputs();
  if (!error) error = look_at_outputs();
  if (!error && check_settings().nan) look_for_nan();
  return found_.tell(error, *launch_.plan->api, "run",
                     launch_.plan->describe(launch_.shape) + origin_string(path_));
}

void RunCheck::look_at_guards() {
  each_spoilt([&](const std::string& name, const std::string& what) {
    found_.add(
        fmt::format("wrote outside of {}: {}. Look for a loop or a wide store that begins before "
                    "the first element or goes past the last one",
                    name, what));
  });
  if (const auto what = memory_->written_after_free(); !what.empty())
    found_.add(
        fmt::format("wrote into memory that was freed before: {}. Look for a pointer of an "
                    "earlier run that is kept",
                    what));
}

void RunCheck::look_at_inputs() {
  Room room;
  for (auto& input : inputs_) {
    if (!input.hashed) continue;
    const auto* bytes = fetch(input, room);
    if (bytes && hash_of(bytes, *input.footprint) != input.hash)
      found_.add(
          fmt::format("changed {}, which it may only read: it is no input that an output stands "
                      "for (tn_op_request.aliases)",
                      input.name));
  }
}

// Returns which elements have the pattern; none if no element has it.
std::vector<bool> RunCheck::unwritten(const Operand& o, Pattern pattern) {
  Room room;
  const auto* bytes = fetch(o, room);
  return bytes ? with_pattern(bytes, reinterpret_cast<uintptr_t>(o.data), *o.footprint,
                              size_of(o.type), pattern)
               : std::vector<bool>();
}

// An element may have the pattern as its right value. Then it still has that value after a second
// run over another pattern, which differs in each byte. Any other element was not written, or was
// computed with what its memory held. Plans that change memory in place cannot run again: of these
// only types of more than two bytes are checked, in which the pattern is no sensible value. Returns
// the error of the second run, after which outputs have no values.
tn_error* RunCheck::look_at_outputs() {
  std::vector<std::vector<bool>> suspects;
  bool any = false;
  const bool changes =
      std::any_of(outputs_.begin(), outputs_.end(), [](const Operand& o) { return o.in_place; });
  for (auto& o : outputs_) {
    const bool looks = !o.in_place && (!changes || size_of(o.type) > 2);
    suspects.push_back(looks ? unwritten(o, unwritten_) : std::vector<bool>());
    any = any || !suspects.back().empty();
  }
  if (any && !changes)
    if (tn_error* error = run_again(suspects)) return error;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto first = std::find(suspects[i].begin(), suspects[i].end(), true);
    if (first == suspects[i].end()) continue;
    found_.add(
        fmt::format("did not write {} of the {} elements of {}, or computed them with what was "
                    "there before; in the order of memory, the first "
                    "of them is number {} (counted from 0)",
                    std::count(first, suspects[i].end(), true), suspects[i].size(),
                    outputs_[i].name, first - suspects[i].begin()));
  }
  return nullptr;
}

tn_error* RunCheck::run_again(std::vector<std::vector<bool>>& suspects) {
  fill_outputs(Pattern::unwritten_again);
  Arguments own(launch_.args(stream_));
  const observe::PlanAtWork work(*launch_.plan, launch_.shape, path_);
  tn_error* error = launch_.plan->api->run(launch_.plan->plan, &own.run(), &work);
  own.spoil();
  if (!memory_->finish(error, stream_)) {
    for (auto& suspect : suspects) suspect.clear();
    return error;
  }
  if (error) {
    const auto code = error->code;
    return launch_.plan->api->broken(
        "run",
        fmt::format("failed when it was run again with the same arguments: {}; a plan must run "
                    "any number of times",
                    plugins::take_message(error)),
        code);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (suspects[i].empty()) continue;
    const auto same = unwritten(outputs_[i], unwritten_);
    for (size_t k = 0; k < suspects[i].size(); ++k)
      suspects[i][k] = suspects[i][k] && (same.empty() || !same[k]);
  }
  return nullptr;
}

void RunCheck::look_for_nan() {
  if (inputs_had_nan_) return;
  Room room;
  for (auto& o : outputs_) {
    const auto* bytes = fetch(o, room);
    if (!bytes) continue;
    if (const auto element = first_nan(bytes, *o.footprint, o.type))
      return found_.add(
          fmt::format("made a NaN of inputs that have none (TENON_CHECK=nan looks for "
                      "this): element {} of {}, counted in the order of memory",
                      *element, o.name));
  }
}

}  // namespace tenon::checked
