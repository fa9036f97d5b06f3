// Repeats recorded launches and compares what they write with the recording, bit by bit:
// `replay fibers|threads FILE…`.
//
// Linked with kernels that are compiled under sanitizers, with -DNS_EMULATION_LIST. Every buffer is
// its own piece of heap of exactly its size. The files' format is src/emulated/enabled/record.rs's.
#include "runtime.h"
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<unsigned char>;
enum Kind : uint32_t { CONSTANTS, READ, WRITTEN };

struct Argument {
    uint32_t kind;
    Bytes before, after;
};

struct Recording {
    std::string kernel;
    uint32_t blocks, lanes, shared_reals, real_bytes;
    std::vector<Argument> arguments;
};

[[noreturn]] void die(const std::string& message) {
    std::fprintf(stderr, "replay: %s\n", message.c_str());
    std::exit(1);
}

class Reader {
  public:
    explicit Reader(const char* path) : path_(path) {
        std::ifstream file(path, std::ios::binary);
        content_.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    const unsigned char* take(size_t n) {
        if (n > content_.size() - at_) die(std::string(path_) + " ends too early");
        at_ += n;
        return content_.data() + (at_ - n);
    }
    template <class T> T number() {
        T value;
        std::memcpy(&value, take(sizeof(T)), sizeof(T));
        return value;
    }
    Bytes bytes(size_t n) {
        const unsigned char* first = take(n);
        return Bytes(first, first + n);
    }

  private:
    const char* path_;
    Bytes content_;
    size_t at_ = 0;
};

Recording read(const char* path) {
    Reader reader(path);
    if (std::memcmp(reader.take(8), "NSREPLAY", 8) != 0) die(std::string(path) + " is no recording");
    const auto name_bytes = reader.number<uint32_t>();
    Recording recording;
    recording.blocks = reader.number<uint32_t>();
    recording.lanes = reader.number<uint32_t>();
    recording.shared_reals = reader.number<uint32_t>();
    recording.real_bytes = reader.number<uint32_t>();
    recording.arguments.resize(reader.number<uint32_t>());
    const Bytes name = reader.bytes(name_bytes);
    recording.kernel.assign(name.begin(), name.end());
    for (Argument& argument : recording.arguments) {
        argument.kind = reader.number<uint32_t>();
        const auto n = reader.number<uint64_t>();
        argument.before = reader.bytes(n);
    }
    for (Argument& argument : recording.arguments)
        argument.after = argument.kind == WRITTEN ? reader.bytes(argument.before.size()) : argument.before;
    return recording;
}

bool both_nan(const unsigned char* a, const unsigned char* b, uint32_t bytes) {
    double x[2];
    float y[2];
    if (bytes == 8) {
        std::memcpy(&x[0], a, 8);
        std::memcpy(&x[1], b, 8);
        return std::isnan(x[0]) && std::isnan(x[1]);
    }
    std::memcpy(&y[0], a, 4);
    std::memcpy(&y[1], b, 4);
    return std::isnan(y[0]) && std::isnan(y[1]);
}

// The first real that differs, or the number of reals; NaNs are all the same.
size_t difference(const unsigned char* is, const Bytes& should_be, uint32_t real_bytes) {
    const size_t n = should_be.size() / real_bytes;
    for (size_t i = 0; i < n; ++i) {
        const unsigned char *a = is + i * real_bytes, *b = should_be.data() + i * real_bytes;
        if (std::memcmp(a, b, real_bytes) != 0 && !both_nan(a, b, real_bytes)) return i;
    }
    const size_t rest = should_be.size() % real_bytes;
    if (rest != 0 && std::memcmp(is + n * real_bytes, should_be.data() + n * real_bytes, rest) != 0) return n - 1;
    return n;
}

emulation::Kernel* find(const std::string& name) {
    for (emulation::Listed* listed = emulation::Listed::first(); listed; listed = listed->next)
        if (name == listed->name) return listed->kernel;
    die("no kernel `" + name + "` is linked in");
}

void replay(const Recording& recording, uint32_t schedule) {
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    std::vector<std::unique_ptr<unsigned char, Free>> memory;
    std::vector<void*> addresses;
    std::vector<uint64_t> constants;
    for (const Argument& argument : recording.arguments) {
        memory.emplace_back(static_cast<unsigned char*>(std::malloc(argument.before.size())));
        // An empty buffer has no address.
        if (!argument.before.empty()) std::memcpy(memory.back().get(), argument.before.data(), argument.before.size());
        addresses.push_back(memory.back().get());
        constants.push_back(argument.kind == CONSTANTS ? argument.before.size() : 0);
    }
    emulation::Launch launch = {};
    launch.blocks = recording.blocks;
    launch.lanes = recording.lanes;
    launch.shared_reals = recording.shared_reals;
    launch.schedule = schedule;
    launch.seed = 1;
    launch.n_arguments = uint32_t(addresses.size());
    launch.argument_bytes = constants.data();
    find(recording.kernel)(&launch, addresses.data());
    for (size_t index = 0; index < addresses.size(); ++index) {
        const Argument& argument = recording.arguments[index];
        if (argument.kind == CONSTANTS) continue;
        const size_t first = difference(memory[index].get(), argument.after, recording.real_bytes);
        if (first != argument.after.size() / recording.real_bytes)
            die("`" + recording.kernel + "`, schedule " + std::to_string(schedule) + ": argument " + std::to_string(index) +
                " differs from its recording at real " + std::to_string(first));
    }
}

} // namespace

int main(int n, char** words) {
    if (n < 3) die("usage: replay fibers|threads FILE…");
    const bool threads = std::string(words[1]) == "threads";
    for (int file = 2; file < n; ++file) {
        const Recording recording = read(words[file]);
        const uint32_t first = threads ? emulation::THREADS : emulation::ASCENDING;
        const uint32_t last = threads ? emulation::THREADS : emulation::SHUFFLED;
        for (uint32_t schedule = first; schedule <= last; ++schedule) replay(recording, schedule);
    }
    std::printf("%d launches agree with their recordings\n", n - 2);
}
