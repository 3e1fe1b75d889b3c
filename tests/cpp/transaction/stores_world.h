#pragma once

// Small stores with real bytes, and holdings made of them. Every token has four bytes in its page and every image one
// repeated word; a test knows both of each holding, and compares every replica with them, wherever it lies.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "cpp/memory/host_buffer.h"
#include "cpp/memory/host_memory.h"
#include "cpp/state/page_count.h"
#include "cpp/transaction/running_transaction.h"
#include "tests/support/manual_copy_engine.h"

namespace ninfer::testing_support {

struct WorldSizes {
    std::int64_t pages = 16;
    std::int64_t active_slots = 3;
    std::int64_t checkpoint_slots = 3;  // of both kinds: 0 and 0 is a model without recurrent layers
    std::int64_t host_blocks = 40;

    bool has_images() const { return active_slots + checkpoint_slots > 0; }
};

// A holding and what its bytes must be.
struct KnownHolding {
    Holding holding;
    std::vector<std::uint32_t> tokens;
    std::uint32_t image_word = 0;
};

// The same of an active sequence.
struct KnownSequence {
    SpaceId kv;
    ImageId image;
    std::vector<std::uint32_t> tokens;
    std::uint32_t image_word = 0;
};

// The memory of a world, used again by the next one, with whatever is in it.
struct WorldMemory {
    static constexpr std::size_t kBytes = 64 << 10;

    HostMemory pages{kBytes};
    HostMemory images{kBytes};
    HostBuffer host{kBytes};
};

class StoresWorld {
   public:
    static constexpr std::size_t kPageBytes = 4 * kPageTokens;
    static constexpr std::size_t kImageBytes = 320;
    static constexpr std::size_t kBlockBytes = 128;
    static constexpr std::int64_t kPageBlocks = 2;
    static constexpr std::int64_t kImageBlocks = 3;

    StoresWorld(const WorldSizes& sizes, WorldMemory& memory, std::uint64_t seed)
        : page_memory(memory.pages),
          image_memory(memory.images),
          host({memory.host.data(), static_cast<std::size_t>(sizes.host_blocks) * kBlockBytes}, kBlockBytes),
          pages(page_memory, kPageBytes, sizes.pages, host),
          images(sizes.has_images()
                     ? std::make_unique<StateImageStore>(
                           image_memory, ImageStoreSize{kImageBytes, sizes.active_slots, sizes.checkpoint_slots}, host)
                     : nullptr),
          copies(pages, images.get(), host, engine),
          random(seed) {}

    StateStores stores() { return {&pages, images.get(), &copies}; }
    ResourceAxes used() const { return axes_of(copies.used()); }

    // --- sequences and holdings; whatever is refused here ends the test -----------------------------------------------
    KnownSequence open(std::int64_t reserved_pages) {
        KnownSequence sequence;
        sequence.kv = must(pages.open(reserved_pages));
        if (images != nullptr) sequence.image = must(images->open());
        return sequence;
    }
    // Computes up to `end` tokens, and a new image.
    void compute(KnownSequence& sequence, std::int64_t end) {
        must(pages.map(sequence.kv, end));
        const auto table = pages.page_table(sequence.kv);
        for (auto position = std::ssize(sequence.tokens); position < end; ++position) {
            sequence.tokens.push_back(static_cast<std::uint32_t>(random()));
            const auto page = static_cast<std::size_t>(table[static_cast<std::size_t>(position / kPageTokens)]);
            std::byte* data = page_memory.data() + page * kPageBytes + position % kPageTokens * 4;
            std::memcpy(data, &sequence.tokens.back(), 4);
        }
        must(pages.commit(sequence.kv, end));
        if (images == nullptr) return;
        sequence.image_word = static_cast<std::uint32_t>(random());
        std::byte* image = images->write(sequence.image);
        for (std::size_t i = 0; i < kImageBytes; i += 4) std::memcpy(image + i, &sequence.image_word, 4);
        must(images->commit(sequence.image));
    }
    KnownHolding finish(const KnownSequence& sequence) {
        must(pages.finish(sequence.kv));
        if (images != nullptr) must(images->finish(sequence.image));
        return {{sequence.kv, sequence.image}, sequence.tokens, sequence.image_word};
    }
    KnownSequence fork(const KnownHolding& source, std::int64_t frontier, std::int64_t reserved_pages) {
        KnownSequence sequence;
        sequence.kv = must(pages.fork(source.holding.kv, frontier, reserved_pages));
        if (!is_aligned(frontier)) complete(must(copies.start_tail(sequence.kv)));
        if (images != nullptr) sequence.image = must(images->fork(source.holding.image));
        sequence.tokens.assign(source.tokens.begin(), source.tokens.begin() + frontier);
        sequence.image_word = source.image_word;
        return sequence;
    }
    // A holding of that many new tokens.
    KnownHolding make(std::int64_t tokens) {
        KnownSequence sequence = open(pages_of(tokens));
        compute(sequence, tokens);
        return finish(sequence);
    }
    // One that begins with the whole of another one.
    KnownHolding extend(const KnownHolding& base, std::int64_t tokens) {
        const std::int64_t frontier = std::ssize(base.tokens);
        KnownSequence sequence = fork(base, frontier, pages_of(tokens) - frontier / kPageTokens);
        compute(sequence, tokens);
        return finish(sequence);
    }
    // Another holding of the same, or of its beginning: nothing is copied. With a shorter frontier the image is the same
    // one, which says nothing about tokens here.
    KnownHolding alias(const KnownHolding& known, std::int64_t frontier) {
        KnownHolding copy = known;
        copy.holding.kv = must(pages.share(known.holding.kv, frontier));
        if (images != nullptr) must(images->retain(known.holding.image));
        copy.tokens.resize(static_cast<std::size_t>(frontier));
        return copy;
    }
    KnownHolding alias(const KnownHolding& known) { return alias(known, std::ssize(known.tokens)); }
    void release(const Holding& holding) {
        must(pages.release(holding.kv));
        if (images != nullptr) must(images->release(holding.image));
    }
    void release(const KnownSequence& sequence) { release(Holding{sequence.kv, sequence.image}); }

    // --- placement ----------------------------------------------------------------------------------------------------
    ImageId complete(CopyId copy) {
        engine.complete_all();
        copies.poll(SIZE_MAX);
        return must(copies.publish(copy));
    }
    PageId page_at(const Holding& holding, std::int64_t index) const {
        PageId found;
        pages.for_each_page(holding.kv, [&](PageId page, const LogicalPage&) {
            if (index-- == 0) found = page;
        });
        return found;
    }
    void page_to_host(PageId page) { complete(must(copies.start_page(page, Tier::kHost))); }
    void page_off_device(PageId page) { must(pages.drop(page, Tier::kDevice)); }
    void image_to_host(const Holding& holding) { complete(must(copies.start_image(holding.image, Tier::kHost))); }
    void image_off_device(const Holding& holding) { must(images->drop(holding.image, Tier::kDevice)); }
    // Everything of the holding is on Host alone.
    void to_host(const Holding& holding) {
        const std::int64_t count = pages_of(pages.find(holding.kv).value()->frontier);
        for (std::int64_t i = 0; i < count; ++i) {
            page_to_host(page_at(holding, i));
            page_off_device(page_at(holding, i));
        }
        if (images == nullptr) return;
        image_to_host(holding);
        image_off_device(holding);
    }

    // --- what is there ------------------------------------------------------------------------------------------------
    // Every replica of the holding has its bytes, as far as its frontier goes.
    void expect_shows(const Holding& holding, const std::vector<std::uint32_t>& tokens, std::uint32_t image_word) {
        const std::int64_t frontier = pages.find(holding.kv).value()->frontier;
        ASSERT_LE(frontier, std::ssize(tokens));
        ASSERT_TRUE(pages.valid(holding.kv).value());
        std::int64_t begin = 0;
        pages.for_each_page(holding.kv, [&](PageId, const LogicalPage& page) {
            const auto bytes = static_cast<std::size_t>(std::min(frontier - begin, kPageTokens)) * 4;
            for (const std::byte* replica : replicas(page))
                EXPECT_EQ(std::memcmp(replica, tokens.data() + begin, bytes), 0) << "page at " << begin;
            begin += kPageTokens;
        });
        if (images == nullptr) return;
        const StateImage& image = *images->find(holding.image).value();
        if (image.on_device()) expect_word(images->slot_data(image.slot), image_word);
        if (image.on_host()) expect_word(host_record(image.host, kImageBytes), image_word);
    }
    void expect_shows(const KnownHolding& known) { expect_shows(known.holding, known.tokens, known.image_word); }
    // What a unit of the new sequence would read.
    void expect_shows(const KnownSequence& sequence) {
        const auto table = pages.page_table(sequence.kv);
        ASSERT_EQ(pages.find(sequence.kv).value()->frontier, std::ssize(sequence.tokens));
        for (std::int64_t i = 0; i < std::ssize(sequence.tokens); ++i) {
            const auto page = static_cast<std::size_t>(table[static_cast<std::size_t>(i / kPageTokens)]);
            ASSERT_EQ(std::memcmp(page_memory.data() + page * kPageBytes + i % kPageTokens * 4,
                                  &sequence.tokens[static_cast<std::size_t>(i)], 4),
                      0)
                << "token " << i;
        }
        if (images != nullptr) expect_word(images->read(sequence.image), sequence.image_word);
    }

    template <typename T>
    static T must(Result<T, Refusal> result) {
        if (!result) {
            ADD_FAILURE() << result.error().message();
            std::abort();
        }
        return std::move(result).value();
    }

    HostMemory& page_memory;
    HostMemory& image_memory;
    HostTier host;
    PagedKvStore pages;
    std::unique_ptr<StateImageStore> images;
    ManualCopyEngine engine;
    ReplicaCopies copies;
    std::mt19937_64 random;

   private:
    std::vector<const std::byte*> replicas(const LogicalPage& page) {
        std::vector<const std::byte*> found;
        if (page.on_device())
            found.push_back(page_memory.data() + static_cast<std::size_t>(page.device_page) * kPageBytes);
        if (page.on_host()) found.push_back(host_record(page.host, kPageBytes));
        return found;
    }
    const std::byte* host_record(const BlockList& list, std::size_t bytes) {
        std::vector<CopySegment> segments;
        record_.resize(bytes);
        host.append_from_host(list, record_.data(), bytes, segments);
        for (const auto& segment : segments) std::memcpy(segment.dst, segment.src, segment.bytes);
        return record_.data();
    }
    static void expect_word(const std::byte* data, std::uint32_t word) {
        for (std::size_t i = 0; i < kImageBytes; i += 4) ASSERT_EQ(std::memcmp(data + i, &word, 4), 0) << "byte " << i;
    }

    std::vector<std::byte> record_;
};

}  // namespace ninfer::testing_support
