// Scores jets of different numbers of particles with a Particle Transformer, in several threads.
//
//     g++ -std=c++17 jets.cpp $(pkg-config --cflags --libs torchless) -pthread -o jets
//     ./jets tagger.onnx [cuda]
//
// The particles of all jets are one std::vector of structures. Nothing is padded or copied before
// the call.
#include <torchless.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

struct Particle {
    float px, py, pz, energy;
    float features[5];
};

// Jets as an event loop makes them: particles one after another, and where each jet begins.
struct Jets {
    std::vector<Particle> particles;
    std::vector<int64_t> offsets{0};
};

// Ends the program with the error of a call that failed. A reference, because arguments are
// evaluated in any order: the call that makes the error is one.
void require(torchless_status status, torchless_error *&error) {
    if (status == TORCHLESS_OK) {
        return;
    }
    std::fprintf(stderr, "error: %s\n", torchless_error_message(error));
    if (const char *hint = torchless_error_hint(error)) {
        std::fprintf(stderr, "hint: %s\n", hint);
    }
    torchless_error_free(error);
    std::exit(1);
}

Jets make_jets(int n_jets) {
    Jets jets;
    for (int jet = 0; jet < n_jets; ++jet) {
        int n_particles = 1 + jet * 7 % 19;
        for (int i = 0; i < n_particles; ++i) {
            float pt = 50.0f / (1 + i), eta = 0.1f * jet + 0.02f * i, phi = 0.3f * i - 1;
            Particle particle{pt * std::cos(phi), pt * std::sin(phi), pt * std::sinh(eta), pt * std::cosh(eta), {}};
            for (int feature = 0; feature < 5; ++feature) {
                particle.features[feature] = std::sin(1.0f + jet + 2.0f * i + 3.0f * feature);
            }
            jets.particles.push_back(particle);
        }
        jets.offsets.push_back(static_cast<int64_t>(jets.particles.size()));
    }
    return jets;
}

// Computes three logits of every jet.
std::vector<float> score(const torchless_model *model, torchless_scratch *scratch, const Jets &jets) {
    const size_t n_particles = jets.particles.size(), step = sizeof(Particle) / sizeof(float);
    auto column = [&](const float *first) { return torchless_column{TORCHLESS_FLOAT32, first, n_particles, step}; };
    const Particle &first = jets.particles.front();
    std::vector<torchless_column> x, v{column(&first.px), column(&first.py), column(&first.pz), column(&first.energy)};
    for (const float &feature : first.features) {
        x.push_back(column(&feature));
    }
    const size_t n_jets = jets.offsets.size() - 1;
    torchless_ragged ragged[] = {
        {"x", TORCHLESS_INT64, jets.offsets.data(), n_jets, x.data(), x.size()},
        {"v", TORCHLESS_INT64, jets.offsets.data(), n_jets, v.data(), v.size()},
    };
    torchless_events events{nullptr, 0, ragged, 2};
    std::vector<float> logits(3 * n_jets);
    torchless_output output{};
    output.name = "logits";
    output.buffer = logits.data();
    output.capacity = logits.size();
    output.buffer_type = TORCHLESS_FLOAT32;
    torchless_error *error = nullptr;
    require(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error), error);
    return logits;
}

int main(int argc, char **argv) {
    if (argc != 2 && argc != 3) {
        std::fprintf(stderr, "usage: jets MODEL [DEVICE]\n");
        return 2;
    }
    const char *device = argc == 3 ? argv[2] : "cpu";
    torchless_error *error = nullptr;
    torchless_model *model = nullptr;
    require(
        torchless_open_on_device(argv[1], TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, device, nullptr, 0, &model, &error),
        error);
    const Jets jets = make_jets(40);
    // The model is shared; each thread has a scratch.
    std::vector<std::vector<float>> found(16);
    std::vector<std::thread> threads;
    for (auto &logits : found) {
        threads.emplace_back([&] {
            torchless_error *error = nullptr;
            torchless_scratch *scratch = nullptr;
            require(torchless_scratch_new(1, &scratch, &error), error);
            for (int repeat = 0; repeat < 3; ++repeat) {
                logits = score(model, scratch, jets);
            }
            torchless_scratch_free(scratch);
        });
    }
    for (auto &thread : threads) {
        thread.join();
    }
    for (const auto &logits : found) {
        if (std::memcmp(logits.data(), found[0].data(), logits.size() * sizeof(float)) != 0) {
            std::fprintf(stderr, "error: threads differ\n");
            return 1;
        }
    }
    for (int jet = 0; jet < 3; ++jet) {
        std::printf("jet %d: %8.5f %8.5f %8.5f\n", jet, found[0][3 * jet], found[0][3 * jet + 1], found[0][3 * jet + 2]);
    }
    std::printf("16 threads on %s: the same bits\n", torchless_device(model));
    torchless_model_free(model);
}
