// Which objects a recorded function has called, such as modules. Another object may take the place
// of one that is gone, and do something else.
#pragma once

namespace tenon::recording {

// A recording begins on the calling thread.
void calls_begin();
// The function that is recorded calls the object at this place. Whoever has it says when its memory
// goes (flags_are_gone), which is a change of the world unless the function itself has made it.
void calls(const void* object);

}  // namespace tenon::recording
