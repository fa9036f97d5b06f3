// Schedules the lanes of a block: fibers in a chosen order, or threads; and reports which
// rule a kernel broke, and where.
//
// Fibers: the scheduler runs a warp until each of its lanes waits (at a shuffle, at a barrier, at
// the end), compares what they wait for, repeats the warp after a shuffle, and lets
// all warps pass a barrier together. Threads: gates of a mutex and a condition variable, one per
// warp and one per block, so that ThreadSanitizer sees the order that barriers make and no other.
#include "runtime.h"
#include "fiber.h"
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#if defined(__SANITIZE_ADDRESS__) || defined(NS_FIBER_ASAN)
#define NS_GUARD_BYTES 0 // AddressSanitizer watches the end itself
#else
#define NS_GUARD_BYTES 512
#endif

namespace emulation {
namespace {

const uint32_t WARP_LANES = 32;
const size_t STACK_BYTES = 256 << 10;

enum class Wait : uint32_t { RUNNING, SHUFFLE, BARRIER, END };

// What a lane waits for, and where in the kernel's text.
struct Place {
    Wait wait = Wait::RUNNING;
    int line = 0;
    const char* file = "";

    bool same(const Place& other) const {
        return wait == other.wait && line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
    }
    std::string text() const {
        if (wait == Wait::END) return "the end of the kernel";
        const char* what = wait == Wait::SHUFFLE ? "SHUFFLE_XOR" : "BARRIER";
        return std::string(what) + " at " + file + ":" + std::to_string(line);
    }
};

// Uninitialised shared memory of exactly the size asked for: NaN in every real, and a guard behind.
class Shared {
  public:
    explicit Shared(size_t bytes) : bytes_(bytes), memory_(static_cast<unsigned char*>(malloc(bytes + NS_GUARD_BYTES))) {
        if (!memory_) abort();
    }
    Shared(const Shared&) = delete;
    ~Shared() { free(memory_); }
    void* poisoned() {
        std::memset(memory_, 0xff, bytes_ + NS_GUARD_BYTES);
        return memory_;
    }
    bool overrun() const {
        for (size_t byte = bytes_; byte < bytes_ + NS_GUARD_BYTES; ++byte)
            if (memory_[byte] != 0xff) return true;
        return false;
    }

  private:
    size_t bytes_;
    unsigned char* memory_;
};

struct Slot {
    unsigned char bytes[2][8]; // of one shuffle and of the next: a slow lane may still read the one before
};

} // namespace

// Lanes that run together. Fibers and threads differ in how a lane waits.
struct Block {
    const Body& body;
    const Launch& launch;
    std::vector<Lane> lanes;
    std::vector<Slot> slots;
    uint32_t number = 0;

    Block(const Launch& launch_, const Body& body_)
        : body(body_), launch(launch_), lanes(launch_.lanes), slots(launch_.lanes) {}
    virtual ~Block() = default;
    virtual void wait(Lane& lane, const Place& place) = 0;

    void start(uint32_t block, void* shared) {
        number = block;
        for (uint32_t lane = 0; lane < launch.lanes; ++lane)
            lanes[lane] = Lane{lane, block, launch.lanes, launch.blocks, shared, this, 0};
    }
    std::string where() const { return "in block " + std::to_string(number); }
};

void barrier(Lane& lane, const char* file, int line) { lane.running->wait(lane, Place{Wait::BARRIER, line, file}); }

void exchange(Lane& lane, uint32_t from, void* value, size_t bytes, const char* file, int line) {
    Block& block = *lane.running;
    const uint32_t turn = lane.n_shuffles++ % 2;
    const Place place = {Wait::SHUFFLE, line, file};
    if (from / WARP_LANES != lane.lane / WARP_LANES || from >= lane.n_lanes) {
        std::fprintf(stderr, "emulation: lane %u asks lane %u, not of its warp, %s\n", lane.lane, from, place.text().c_str());
        std::abort();
    }
    std::memcpy(block.slots[lane.lane].bytes[turn], value, bytes);
    block.wait(lane, place);
    std::memcpy(value, block.slots[from].bytes[turn], bytes);
}

namespace {

std::string disagreement(const Block& block, uint32_t lane, const Place& place, uint32_t other, const Place& others) {
    return "lanes part " + block.where() + ": lane " + std::to_string(lane) + " is at " + place.text() + ", lane " +
           std::to_string(other) + " at " + others.text();
}

[[noreturn]] void die(const std::string& message) {
    std::fprintf(stderr, "emulation: %s\n", message.c_str());
    std::abort();
}

// ---- Fibers

struct FiberBlock final : Block {
    Fiber scheduler;
    std::vector<Fiber> fibers;
    std::vector<Place> places;
    std::vector<uint32_t> warps, order;
    uint64_t random;

    FiberBlock(const Launch& launch_, const Body& body_)
        : Block(launch_, body_), fibers(launch_.lanes), places(launch_.lanes),
          warps((launch_.lanes + WARP_LANES - 1) / WARP_LANES), order(WARP_LANES), random(launch_.seed * 2 + 1) {
        for (uint32_t warp = 0; warp < warps.size(); ++warp)
            warps[warp] = launch_.schedule == DESCENDING ? uint32_t(warps.size()) - 1 - warp : warp;
    }

    void wait(Lane& lane, const Place& place) override {
        places[lane.lane] = place;
        scheduler.switch_from(fibers[lane.lane]);
    }

    // Stacks outlive launches: making them costs more than a small kernel.
    static Stack& stack(uint32_t lane) {
        static thread_local std::vector<Stack> stacks;
        while (stacks.size() <= lane) stacks.emplace_back(STACK_BYTES, stacks.size() * 448 % 32768);
        return stacks[lane];
    }
    static void lane_main(void* argument) {
        Lane& lane = *static_cast<Lane*>(argument);
        Block& block = *lane.running;
        block.body.call(block.body.arguments, lane);
        block.wait(lane, Place{Wait::END, 0, ""});
        std::abort();
    }

    void shuffle(std::vector<uint32_t>& items, uint32_t n) {
        for (uint32_t i = n; i > 1; --i) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            std::swap(items[i - 1], items[(random >> 33) % i]);
        }
    }

    // Runs each lane of the warp once; false with a message if they do not then wait for the same
    // thing.
    bool step(uint32_t warp, std::string& message) {
        const uint32_t first = warp * WARP_LANES, n = std::min(launch.lanes - first, WARP_LANES);
        for (uint32_t i = 0; i < n; ++i) order[i] = launch.schedule == DESCENDING ? n - 1 - i : i;
        if (launch.schedule == SHUFFLED) shuffle(order, n);
        for (uint32_t i = 0; i < n; ++i) fibers[first + order[i]].switch_from(scheduler);
        return agree(first, first + 1, first + n, message);
    }
    bool agree(uint32_t first, uint32_t from, uint32_t to, std::string& message, uint32_t stride = 1) {
        for (uint32_t lane = from; lane < to; lane += stride)
            if (!places[lane].same(places[first])) {
                message = disagreement(*this, first, places[first], lane, places[lane]);
                return false;
            }
        return true;
    }

    bool run_block(uint32_t block, void* shared, std::string& message) {
        start(block, shared);
        for (uint32_t lane = 0; lane < launch.lanes; ++lane)
            fibers[lane].prepare(stack(lane), scheduler, lane_main, &lanes[lane]);
        do {
            if (launch.schedule == SHUFFLED) shuffle(warps, uint32_t(warps.size()));
            for (uint32_t warp : warps)
                do
                    if (!step(warp, message)) return false;
                while (places[warp * WARP_LANES].wait == Wait::SHUFFLE);
            if (!agree(0, WARP_LANES, launch.lanes, message, WARP_LANES)) return false;
        } while (places[0].wait != Wait::END);
        return true;
    }
};

// Takes blocks until none is left; false with a message at the first broken rule.
bool run_fibers(const Launch& launch, const Body& body, size_t shared_bytes, std::atomic<uint32_t>& next,
                std::string& message) {
    FiberBlock block(launch, body);
    Shared shared(shared_bytes);
    for (uint32_t number; (number = next.fetch_add(1)) < launch.blocks;) {
        if (!block.run_block(number, shared.poisoned(), message)) return false;
        if (shared.overrun()) {
            message = "a write past the end of shared memory (" + std::to_string(launch.shared_reals) + " reals) " +
                      block.where();
            return false;
        }
    }
    return true;
}

// ---- Threads

struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    uint32_t arrived = 0, first = 0;
    uint64_t turn = 0;
    Place place;
};

struct ThreadBlock final : Block {
    std::vector<Gate> warp_gates;
    Gate block_gate;
    // How many lanes of each warp wait at its gate (low half) and at the block's (high half).
    // Relaxed: counting must not put lanes in an order that the kernel's barriers did not ask for.
    std::vector<std::atomic<uint32_t>> waiting;
    Shared shared;

    ThreadBlock(const Launch& launch_, const Body& body_, size_t shared_bytes)
        : Block(launch_, body_), warp_gates((launch_.lanes + WARP_LANES - 1) / WARP_LANES), waiting(warp_gates.size()),
          shared(shared_bytes) {}

    uint32_t lanes_of(uint32_t warp) const { return std::min(launch.lanes - warp * WARP_LANES, WARP_LANES); }

    void wait(Lane& lane, const Place& place) override {
        const uint32_t warp = lane.lane / WARP_LANES;
        const bool shuffle = place.wait == Wait::SHUFFLE;
        const uint32_t one = shuffle ? 1u : 1u << 16;
        const uint32_t before = waiting[warp].fetch_add(one, std::memory_order_relaxed);
        if ((shuffle ? before >> 16 : before & 0xffff) != 0)
            die("lanes part " + where() + ": lane " + std::to_string(lane.lane) + " is at " + place.text() +
                ", another lane of its warp at " + (shuffle ? "a BARRIER or the end of the kernel" : "a SHUFFLE_XOR"));
        pass(shuffle ? warp_gates[warp] : block_gate, shuffle ? lanes_of(warp) : launch.lanes, lane, place);
    }

    void pass(Gate& gate, uint32_t needed, const Lane& lane, const Place& place) {
        std::unique_lock<std::mutex> lock(gate.mutex);
        if (gate.arrived == 0) {
            gate.place = place;
            gate.first = lane.lane;
        } else if (!gate.place.same(place)) {
            die(disagreement(*this, lane.lane, place, gate.first, gate.place));
        }
        const uint64_t turn = gate.turn;
        if (++gate.arrived < needed) {
            gate.opened.wait(lock, [&] { return gate.turn != turn; });
            return;
        }
        gate.arrived = 0;
        ++gate.turn;
        if (&gate == &block_gate) {
            for (uint32_t warp = 0; warp < waiting.size(); ++warp)
                waiting[warp].fetch_sub(lanes_of(warp) << 16, std::memory_order_relaxed);
            if (place.wait == Wait::END) next_block();
        } else {
            waiting[lane.lane / WARP_LANES].fetch_sub(lanes_of(lane.lane / WARP_LANES), std::memory_order_relaxed);
        }
        gate.opened.notify_all();
    }

    // Called by the last lane to end a block, while the others wait.
    void next_block() {
        if (shared.overrun())
            die("a write past the end of shared memory (" + std::to_string(launch.shared_reals) + " reals) " + where());
        start(number + 1, shared.poisoned());
    }

    void run_all() {
        start(0, shared.poisoned());
        std::vector<std::thread> threads;
        for (uint32_t lane = 0; lane < launch.lanes; ++lane)
            threads.emplace_back([this, lane] {
                for (uint32_t block = 0; block < launch.blocks; ++block) {
                    body.call(body.arguments, lanes[lane]);
                    wait(lanes[lane], Place{Wait::END, 0, ""});
                }
            });
        for (std::thread& thread : threads) thread.join();
    }
};

void fail(const Launch& launch, const std::string& message) {
    if (!launch.failure) die(message);
    launch.failure->failed = 1;
    std::snprintf(launch.failure->message, sizeof launch.failure->message, "%s", message.c_str());
}

} // namespace

bool matches(const Launch& launch, const size_t* constants_bytes, size_t n) {
    if (launch.n_arguments == 0) return true;
    if (launch.n_arguments != n) {
        fail(launch, "the kernel takes " + std::to_string(n) + " arguments, " + std::to_string(launch.n_arguments) +
                         " were passed");
        return false;
    }
    for (size_t index = 0; index < n; ++index)
        if (launch.argument_bytes[index] != constants_bytes[index]) {
            fail(launch, "argument " + std::to_string(index) + " has " + std::to_string(launch.argument_bytes[index]) +
                             " bytes of constants, the kernel takes " + std::to_string(constants_bytes[index]) +
                             " (0: a buffer)");
            return false;
        }
    return true;
}

void run(const Launch& launch, const Body& body, size_t shared_bytes) {
    if (launch.blocks == 0 || launch.lanes == 0) return;
    if (launch.schedule == THREADS) return ThreadBlock(launch, body, shared_bytes).run_all();
    const uint32_t n_threads = std::max(1u, std::min(launch.host_threads, launch.blocks));
    std::atomic<uint32_t> next(0);
    std::vector<std::string> messages(n_threads);
    std::vector<std::thread> threads;
    for (uint32_t thread = 1; thread < n_threads; ++thread)
        threads.emplace_back([&, thread] {
            if (!run_fibers(launch, body, shared_bytes, next, messages[thread])) next = launch.blocks;
        });
    if (!run_fibers(launch, body, shared_bytes, next, messages[0])) next = launch.blocks;
    for (std::thread& thread : threads) thread.join();
    for (const std::string& message : messages)
        if (!message.empty()) return fail(launch, message);
}

} // namespace emulation
