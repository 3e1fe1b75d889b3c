#pragma once

// Sequences that share their beginnings, as chains of shared runs.
//
// A run is a piece of a sequence: elements, and the run that comes before it. A chain is named by its last run and goes
// from there to the root; chains that begin alike share runs, so the runs form a forest. What is true of all chains
// through a run (how many there are, and what the owner notes in RunData) is known once per run: a fact about a sequence
// costs its runs, never its elements, and forking one costs at most one cut.
//
// Invariants (check_invariants): a chain ends exactly at the end of its last run; `holders` of a run is its `ends` plus
// the holders of its children; a run begins where its parent ends; no run is without a holder.

#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "cpp/base/assert.h"
#include "cpp/state/fingerprint.h"

namespace ninfer {

struct RunId {
    std::int32_t value = -1;
    bool none() const noexcept { return value < 0; }
    bool operator==(const RunId&) const = default;
};

template <typename Element, typename RunData>
class SharedRuns {
   public:
    struct Run {
        RunId parent;
        std::int64_t begin = 0;      // index of the first element in every chain through this run
        std::int32_t children = 0;   // runs whose parent this is
        std::int32_t child_ids = 0;  // their ids, combined by exclusive or: the id itself of an only child
        std::int32_t ends = 0;       // chains whose last run this is
        std::int32_t holders = 0;    // chains through this run
        std::vector<Element> elements;
        RunData data{};

        std::int64_t size() const noexcept { return std::ssize(elements); }
        std::int64_t end() const noexcept { return begin + size(); }
    };

    Run& run(RunId id) {
        NINFER_ASSERT_LE(0, id.value);
        NINFER_ASSERT_LT(id.value, std::ssize(runs_));
        return runs_[static_cast<std::size_t>(id.value)];
    }
    const Run& run(RunId id) const { return const_cast<SharedRuns*>(this)->run(id); }

    // Elements of the chain; 0 for none.
    std::int64_t length(RunId last) const { return last.none() ? 0 : run(last).end(); }
    std::int64_t run_count() const noexcept { return std::ssize(runs_) - std::ssize(free_); }

    // A new empty run after `parent` (none: a new root). It must be attached before the next call that visits holders.
    RunId append_run(RunId parent) {
        if (free_.empty()) add_slot();
        const RunId id = free_.back();
        free_.pop_back();
        Run& made = run(id);
        made.parent = parent;
        made.begin = length(parent);
        if (!parent.none()) {
            ++run(parent).children;
            run(parent).child_ids ^= id.value;
        }
        return id;
    }

    // One more chain ends at `last` (none: an empty chain, which holds nothing).
    void attach(RunId last) {
        if (last.none()) return;
        ++run(last).ends;
        for (RunId id = last; !id.none(); id = run(id).parent) ++run(id).holders;
    }

    // One chain less ends at `last`; on_free(Run&) is called for every run that nobody holds any more, last ones first.
    // Returns the last run of the chain that others hold.
    template <typename OnFree>
    RunId detach(RunId last, OnFree&& on_free) {
        if (last.none()) return last;
        RunId left;
        NINFER_ASSERT_LE(1, run(last).ends);
        --run(last).ends;
        for (RunId id = last; !id.none();) {
            Run& passed = run(id);
            NINFER_ASSERT_LE(1, passed.holders);
            const RunId parent = passed.parent;
            if (--passed.holders == 0) {
                NINFER_ASSERT_EQ(passed.children, 0);
                on_free(passed);
                if (!parent.none()) {
                    --run(parent).children;
                    run(parent).child_ids ^= id.value;
                }
                passed = Run{};
                free_.push_back(id);
            } else if (left.none()) {
                left = id;
            }
            id = parent;
        }
        return left;
    }

    // The last run that every chain through `id` goes through.
    RunId end_of_common(RunId id) const {
        while (run(id).ends == 0 && run(id).children == 1) id = RunId{run(id).child_ids};
        return id;
    }

    // The run of the chain that ends exactly at `length` (none for 0), cutting one in two where needed. Existing ids keep
    // their ends: the beginning of the cut run becomes a new run, with a copy of its data; on_cut(Run& first, Run& second)
    // corrects both. Pointers to runs are invalid afterwards.
    template <typename OnCut>
    RunId cut(RunId last, std::int64_t length_wanted, OnCut&& on_cut) {
        NINFER_ASSERT_LE(0, length_wanted);
        NINFER_ASSERT_LE(length_wanted, length(last));
        RunId id = last;
        while (!id.none() && run(id).begin >= length_wanted) id = run(id).parent;
        if (id.none() || run(id).end() == length_wanted) return id;
        const RunId first_id = append_run(run(id).parent);
        Run& first = run(first_id);
        Run& second = run(id);
        const auto middle = second.elements.begin() + (length_wanted - second.begin);
        first.elements.assign(second.elements.begin(), middle);
        second.elements.erase(second.elements.begin(), middle);
        first.data = second.data;
        first.holders = second.holders;
        // The parent has one child as before: the first part in place of the second.
        if (!first.parent.none()) {
            --run(first.parent).children;
            run(first.parent).child_ids ^= id.value;
        }
        first.children = 1;
        first.child_ids = id.value;
        second.parent = first_id;
        second.begin = length_wanted;
        on_cut(first, second);
        return first_id;
    }

    // Joins runs of the chain whose border nobody needs any more: no chain ends at it and nothing else begins there.
    // join(Run& first, Run& second) says whether the two may be joined, and if so makes room in `first` for the elements
    // of both and leaves the joint data in `second`. If it finds no memory it throws before it changes anything, and the
    // two stay apart: that costs time later, and giving back never fails.
    template <typename Join>
    void compact(RunId last, Join&& join) {
        for (RunId id = last; !id.none(); id = run(id).parent)
            while (join_with_parent(id, join)) {
            }
    }

    // Calls visit(RunId, Run&) from the last run to the root.
    template <typename Visit>
    void for_each_of(RunId last, Visit&& visit) {
        for (RunId id = last; !id.none(); id = run(id).parent) visit(id, run(id));
    }
    template <typename Visit>
    void for_each_of(RunId last, Visit&& visit) const {
        for (RunId id = last; !id.none(); id = run(id).parent) visit(id, run(id));
    }

    // Calls visit(RunId, const Run&) for every run, in no order that means anything.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for (std::size_t i = 0; i < runs_.size(); ++i)
            if (runs_[i].holders > 0) visit(RunId{static_cast<std::int32_t>(i)}, runs_[i]);
    }

    // Runs, free ids, and of each run what add_run(fingerprint, run) adds: its elements and data.
    template <typename AddRun>
    void add_to(Fingerprint& fingerprint, AddRun&& add_run) const {
        for (const Run& found : runs_) {
            fingerprint.add(found.parent.value);
            fingerprint.add(found.begin);
            fingerprint.add(found.children);
            fingerprint.add(found.child_ids);
            fingerprint.add(found.ends);
            fingerprint.add(found.holders);
            fingerprint.add(found.size());
            add_run(fingerprint, found);
        }
        for (const RunId id : free_) fingerprint.add(id.value);
    }

    // `ends_of` holds, per chain that the owner knows, its last run. Recounts everything.
    void check_invariants(const std::vector<RunId>& ends_of) const {
        std::vector<std::int32_t> ends(runs_.size(), 0);
        std::vector<std::int32_t> holders(runs_.size(), 0);
        std::vector<std::int32_t> children(runs_.size(), 0);
        std::vector<std::int32_t> child_ids(runs_.size(), 0);
        std::vector<bool> unused(runs_.size(), false);
        for (const RunId id : free_) unused[static_cast<std::size_t>(id.value)] = true;
        for (const RunId last : ends_of) {
            if (!last.none()) ++ends[static_cast<std::size_t>(last.value)];
            for_each_of(last, [&](RunId id, const Run&) { ++holders[static_cast<std::size_t>(id.value)]; });
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if (unused[i] || runs_[i].parent.none()) continue;
            ++children[static_cast<std::size_t>(runs_[i].parent.value)];
            child_ids[static_cast<std::size_t>(runs_[i].parent.value)] ^= static_cast<std::int32_t>(i);
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            const Run& found = runs_[i];
            NINFER_ASSERT_EQ(found.ends, ends[i]);
            NINFER_ASSERT_EQ(found.holders, holders[i]);
            NINFER_ASSERT_EQ(found.children, children[i]);
            NINFER_ASSERT_EQ(found.child_ids, child_ids[i]);
            NINFER_ASSERT_EQ(unused[i] ? 0 : 1, found.holders > 0 ? 1 : 0);
            if (!unused[i]) NINFER_ASSERT_EQ(found.begin, length(found.parent));
        }
    }

    // Bytes of the bookkeeping, elements included.
    std::size_t memory_bytes() const {
        std::size_t bytes = runs_.capacity() * sizeof(Run) + free_.capacity() * sizeof(RunId);
        for (const Run& found : runs_) bytes += found.elements.capacity() * sizeof(Element);
        return bytes;
    }

   private:
    template <typename Join>
    bool join_with_parent(RunId second_id, Join&& join) {
        Run& second = run(second_id);
        const RunId first_id = second.parent;
        if (first_id.none()) return false;
        Run& first = run(first_id);
        if (first.ends > 0 || first.children != 1) return false;
        try {
            if (!join(first, second)) return false;
        } catch (const std::bad_alloc&) {
            return false;
        }
        first.elements.insert(first.elements.end(), second.elements.begin(), second.elements.end());
        second.elements = std::move(first.elements);
        second.begin = first.begin;
        second.parent = first.parent;
        if (!first.parent.none()) run(first.parent).child_ids ^= first_id.value ^ second_id.value;
        first = Run{};
        free_.push_back(first_id);
        return true;
    }

    // The free list gets room for every run before the run is there, so that giving it back never allocates.
    void add_slot() {
        NINFER_ASSERT_LT(std::ssize(runs_), std::int64_t{std::numeric_limits<std::int32_t>::max()});
        if (free_.capacity() <= runs_.size()) free_.reserve(2 * runs_.size() + 1);
        runs_.emplace_back();
        free_.push_back(RunId{static_cast<std::int32_t>(runs_.size() - 1)});
    }

    std::vector<Run> runs_;
    std::vector<RunId> free_;
};

}  // namespace ninfer
