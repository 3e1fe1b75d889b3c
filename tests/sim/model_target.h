#pragma once

// One transition of resources as the model knows it: what each checkpoint wants, what is needed, and how far it has come.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/program/publication.h"
#include "cpp/program/resource_result.h"
#include "cpp/transaction/resource_projection.h"
#include "tests/sim/store_model.h"
#include "tests/sim/token_list.h"

namespace ninfer::sim {

using ImageKey = int;

// What a checkpoint wants, if not everything as it is.
struct ModelWant {
    bool survives = true;
    int frontier = 0;
    int device_pages = 0;
    bool drops_host = false;
    ImageOutcome image = ImageOutcome::kAsIs;

    bool operator==(const ModelWant&) const = default;
    auto operator<=>(const ModelWant&) const = default;
};

struct ModelNeed {
    bool root = false;
    Key source = 0;
    bool consumes = false;
    bool takes_owner = false;
    int frontier = 0;
    int pages = 0;
    ResourceAxes room = {};
    std::vector<Key> leaving = {};
    int computed = 0;
};

struct ModelTarget {
    int option = 0;
    std::map<Key, ModelWant> wants = {};  // of checkpoints that are not leaving; of the source only what it has twice

    bool drops_host_pages(Key key) const {
        const auto found = wants.find(key);
        return found != wants.end() && found->second.drops_host;
    }
    bool drops_host_image(Key key) const {
        const auto found = wants.find(key);
        return found != wants.end() && found->second.image == ImageOutcome::kDeviceOnly;
    }
    auto operator<=>(const ModelTarget&) const = default;
};

enum class ModelPhase { kReleases, kPreparation, kInFlight, kPublication, kCommitted, kDraining, kAborted };

struct ModelTransition {
    ModelNeed need;
    ModelTarget target;
    Publication publication = {};
    ModelPhase phase = ModelPhase::kReleases;
    int round = 0;  // 0 demotions, 1 restores, 2 activation
    bool cancelled = false;
    bool changed = false;
    bool changed_besides = false;
    TransactionEnd end = TransactionEnd::kCommitted;
    ModelPhase aborted_in = ModelPhase::kReleases;        // with the round
    std::optional<std::pair<ModelPhase, int>> fate = {};  // where it will be cancelled, if it comes there
    ResourceAxes peak = {};

    // What follows from the target, decided when it starts.
    std::vector<Key> removed;
    std::vector<std::pair<Key, int>> shortened;  // to this frontier
    std::vector<PageKey> device_drops, host_drops, demoted, restored, late_host_drops;
    std::vector<ImageKey> image_device_drops, image_host_drops, demoted_images;
    KvActivation kv = KvActivation::kNone;
    ImageActivation image = ImageActivation::kNone;
    bool pinned = false;  // something that changes is
    std::vector<Key> owners_gone;
    TokenList source_tokens;
    Key source_owner = 0;
    CheckpointKind source_kind = CheckpointKind::kLongAnchor;
    std::map<Key, Key> now;  // of the plan's checkpoints, as they are called now; 0: gone

    // Of one that is cancelled before them.
    void forget_releases() {
        removed.clear();
        shortened.clear();
        host_drops.clear();
        device_drops.clear();
        image_host_drops.clear();
        image_device_drops.clear();
    }
    void abort(TransactionEnd why) {
        if (phase == ModelPhase::kReleases) forget_releases();
        end = why;
        aborted_in = std::exchange(phase, ModelPhase::kDraining);
    }
    bool releases() const {
        return !(removed.empty() && shortened.empty() && host_drops.empty() && device_drops.empty() &&
                 image_host_drops.empty() && image_device_drops.empty());
    }
    bool has_copies(int in_round) const {
        if (in_round == 0) return !demoted.empty() || !demoted_images.empty();
        if (in_round == 1) return !restored.empty();
        return (kv == KvActivation::kFork && need.frontier % 64 != 0) || image == ImageActivation::kRestore;
    }
    bool ended() const { return phase == ModelPhase::kCommitted || phase == ModelPhase::kAborted; }
};

}  // namespace ninfer::sim
