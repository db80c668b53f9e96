// Destructors that a vendor's library would run at exit.
#pragma once

namespace tenon::onednn {

// oneDNN keeps code that it compiles, such as that of products, in static objects, which it makes
// while primitives run and whose destructors end with the process. But devices compute until the
// process has ended, so from this call on, the library that holds `function` registers no
// destructors any more: what it would free, the system frees. Returns false if that is not
// possible.
bool keep_static_objects_of(const void* function);

}  // namespace tenon::onednn
