// How a compiled function becomes a file.
#include <mutex>

#include <fmt/core.h>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/compiled_state.h>
#include <tenon/core/graph/saved.h>
#include <tenon/serialization/program/program_file.h>

namespace tenon::detail {

namespace {

// The program that ran last.
const graph::KindOfCall& kind_to_save(const std::list<graph::KindOfCall>& kinds,
                                      const std::string& note) {
  if (kinds.empty() || kinds.front().programs.empty()) {
    std::string why = kinds.empty() ? note : kinds.front().note;
    if (!why.empty()) why = " (" + why + ")";
    throw ValueError("it has no program yet for the arguments of its last call" + why +
                     ". Call it at least twice with arguments of these shapes first");
  }
  const graph::KnownProgram& known = kinds.front().programs.front();
  if (!known.is_right_in(recording::world()))
    throw ValueError(
        "something was changed since its last program ran that it may depend on: a parameter, a "
        "module or a state that was replaced or loaded, train() or eval(). Call it first as it is "
        "now: once, or twice if it has not been called like this before");
  return kinds.front();
}

}  // namespace

void CompiledCalls::save(const std::filesystem::path& path,
                         const SaveProgramOptions& options) const {
  State& state = this->state();
  const auto write = [&] {
    const auto lock = state.lock_outside("save");
    if (state.had_no_room)
      throw ValueError(fmt::format(
          "the arguments of its last call have no program, because more kinds of arguments take "
          "turns than CompileOptions::max_programs, which is {}. Call reset(), and then the "
          "function at least twice with the arguments that are to be saved",
          state.options.max_programs));
    const graph::KindOfCall& kind = kind_to_save(state.kinds, state.note);
    write_program(path,
                  graph::describe_program(*kind.programs.front().program, kind.signature.tensors,
                                          {options.inputs, options.outputs, options.tensors}));
  };
  try {
    naming_lack_of_memory<CheckpointError>("cannot save the compiled function as", path, write);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("cannot save the compiled function as '{}': {}",
                                 printable(path.native()), error.what()));
  }
}

}  // namespace tenon::detail
