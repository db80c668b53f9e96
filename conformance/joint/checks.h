// The parts of joint_checks. Those of requests, plans and neighbours are for overlays, too.
#pragma once

#include <functional>

#include <tenon/conformance/joint/bench.h>

namespace tenon::conformance::joint {

// Adds a check: what it is about, what has to be so, and what looks.
using Add = std::function<void(const char* about, const char* name, void (*look)(Bench&))>;

void add_memory_checks(const Add& add);
void add_request_checks(const Add& add);
void add_device_checks(const Add& add);
void add_plan_checks(const Add& add);
void add_stream_checks(const Add& add);
void add_shortage_checks(const Add& add);
void add_neighbour_checks(const Add& add);

// What drain has to wait for. It is called at most once in a process, before its end.
void require_drain_to_wait(Bench& bench);

}  // namespace tenon::conformance::joint
