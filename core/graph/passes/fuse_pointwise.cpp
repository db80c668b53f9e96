// Which pointwise nodes and reductions of rows become one. The nodes of a group run where the last
// of them stood, so a group stays open as long as no other node needs what it writes or changes
// what it reads.
#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/passes/fused_group.h>
#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

namespace {

class PointwiseFusion {
 public:
  // With `strict`, a node joins a group only if the group could be finished right after it.
  PointwiseFusion(Draft& draft, bool strict) : draft_(draft), strict_(strict) {}

  void visit(uint32_t i) {
    const TraceNode& node = draft_.trace.nodes[i];
    if (!node.plan) return close_all();  // work of the host keeps its place in the order
    size_t joined = open_.size();
    if (auto member = member_of(draft_, i)) joined = join(std::move(*member));
    for (size_t g = open_.size(); g-- > 0;)
      if (g != joined && open_[g].conflicts_with(draft_, node)) {
        close(g);
        if (g < joined) --joined;
      }
    while (open_.size() > kMaxOpen) close(0);
  }
  void close_all() {
    while (!open_.empty()) close(open_.size() - 1);
  }
  // The groups of several nodes that were closed.
  std::vector<FusedGroup> groups() && { return std::move(closed_); }

 private:
  // A group that nodes may still join. Beyond so many, the oldest is closed.
  static constexpr size_t kMaxOpen = 64;

  // Returns the place of the group that the member is in now.
  size_t join(Member member) {
    const TraceNode& node = draft_.trace.nodes[member.node];
    std::vector<size_t> near;
    for (size_t g = 0; g < open_.size(); ++g)
      if (open_[g].fits(member) && open_[g].shares_with(draft_, node)) near.push_back(g);
    if (auto all = joined_with(near, member)) return put(std::move(*all), near);
    for (size_t k = near.size(); near.size() > 1 && k-- > 0;)
      if (auto one = joined_with({near[k]}, member)) return put(std::move(*one), {near[k]});
    if (auto alone = group_of({std::move(member)})) return put(std::move(*alone), {});
    return open_.size();
  }

  std::optional<FusedGroup> joined_with(const std::vector<size_t>& groups, const Member& member) {
    if (groups.empty()) return std::nullopt;
    std::vector<Member> members;
    for (const size_t g : groups)
      members.insert(members.end(), open_[g].members().begin(), open_[g].members().end());
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return a.node < b.node; });
    members.push_back(member);
    return group_of(std::move(members));
  }

  std::optional<FusedGroup> group_of(std::vector<Member> members) {
    auto group = FusedGroup::of(draft_, std::move(members));
    if (!group || !strict_) return group;
    auto finished = *group;
    return finished.finish(draft_) ? std::move(group) : std::nullopt;
  }

  // Puts the group in place of those that it was made of. Returns its place.
  size_t put(FusedGroup group, const std::vector<size_t>& of) {
    for (size_t k = of.size(); k-- > 0;) open_.erase(open_.begin() + static_cast<ptrdiff_t>(of[k]));
    open_.push_back(std::move(group));
    return open_.size() - 1;
  }

  void close(size_t g) {
    FusedGroup group = std::move(open_[g]);
    open_.erase(open_.begin() + static_cast<ptrdiff_t>(g));
    if (group.members().size() < 2) return;
    auto finished = group;
    if (finished.finish(draft_))
      closed_.push_back(std::move(finished));
    else if (!strict_)
      divide(group);
  }

  // Makes several groups of one that cannot be one program: when its first nodes joined, it was not
  // known yet what its last ones need.
  void divide(const FusedGroup& group) {
    PointwiseFusion parts(draft_, true);
    for (auto& member : group.members()) parts.visit(member.node);
    parts.close_all();
    for (auto& part : std::move(parts).groups()) closed_.push_back(std::move(part));
  }

  Draft& draft_;
  const bool strict_;
  std::vector<FusedGroup> open_, closed_;
};

void make(Draft& draft, const FusedGroup& group, Notes& notes) {
  std::string why;
  auto plan = group.make_plan(draft, why);
  if (!plan) {
    notes.push_back(fmt::format("not fused: {}, because {}", group.names(draft), why));
    return;
  }
  notes.push_back(fmt::format("fused: {}", group.names(draft)));
  for (auto& member : group.members())
    if (member.node != group.last_node()) draft.remove(member.node);
  draft.replace(group.last_node(), group.replacement(std::move(plan)));
}

}  // namespace

size_t fuse_pointwise(Draft& draft, Notes& notes) {
  PointwiseFusion fusion(draft, false);
  for (auto& part : draft.trace.parts) {
    for (uint32_t i = part.first_node; i < part.end_node; ++i) fusion.visit(i);
    fusion.close_all();
  }
  for (auto& group : std::move(fusion).groups()) make(draft, group, notes);
  return draft.compact();
}

}  // namespace tenon::graph
