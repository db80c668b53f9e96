// Marks what libtenon exports; everything else stays hidden.
#pragma once

#if defined(__GNUC__)
#define TENON_API __attribute__((visibility("default")))
#else
#define TENON_API
#endif
