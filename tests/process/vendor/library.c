/* A vendor's library, opened at the first product: from its exit handler on it must not be called
 * any more. */
#include <stdlib.h>

__attribute__((visibility("default"))) int vendor_library_ended = 0;
static void end(void) { vendor_library_ended = 1; }
__attribute__((constructor)) static void begin(void) { atexit(end); }
