// Files of programs: a checkpoint whose tensors are what a program uses, and which has its
// description in the group "@program".
#pragma once

#include <filesystem>

#include <tenon/core/graph/saved.h>
#include <tenon/serialization/verified_file.h>

namespace tenon {

inline constexpr const char* kProgramGroup = "@program";

// Writes a program with the values that its tensors have now. Throws a CheckpointError as save
// does.
void write_program(const std::filesystem::path& path, const graph::SavedProgram& program);

// Reads the description from a file. Throws a CheckpointError that does not name it.
graph::SavedProgram read_program(const VerifiedFile& file);
// Checks that the tensors of the file are those of the program, and gives them dtypes and shapes.
// Throws a CheckpointError that does not name the file.
void match_tensors(const VerifiedFile& file, graph::SavedProgram& program);
// Reads the values of all tensors into memory of the device.
void read_tensors(const VerifiedFile& file, graph::SavedProgram& program, Device device);

// Returns the memory of a tensor of a program, as it is stored.
Tensor memory_of(const graph::SavedTensor& tensor);

}  // namespace tenon
