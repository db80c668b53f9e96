// Takes most of the static thread-local storage that a process has for libraries opened late, as
// other libraries do.
#include <stddef.h>

static _Thread_local char taken[1024] __attribute__((tls_model("initial-exec")));

__attribute__((visibility("default"))) char* greedy_block(void);
char* greedy_block(void) { return taken; }
