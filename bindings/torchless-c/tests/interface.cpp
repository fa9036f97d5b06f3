// Uses every function of torchless.h, prints the layout of its structures, makes the mistakes of
// callers, and writes outputs for a file of jets.
//
//     interface MODEL JETS OUTPUT REFUSED
//
// REFUSED is a model of one node, `the angle`, that devices do not compute. Outputs are those of
// the CPU and, behind them, of the emulated device.
//
// JETS has the number of jets and of particles as int64_t, the offsets, the rows of x (5) and of v
// (4) as float, and x, v and mask padded to 20 particles.
#include <torchless.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

// Structures of C, and the types that the functions say.
static_assert(std::is_standard_layout_v<torchless_output> && std::is_trivial_v<torchless_output>);
static_assert(std::is_same_v<decltype(&torchless_n_inputs), size_t (*)(const torchless_model *)>);
static_assert(std::is_same_v<torchless_status, int32_t> && std::is_same_v<torchless_type, int32_t>);

static int n_failures = 0;

static void check(bool is_right, const char *what) {
    if (!is_right) {
        ++n_failures;
        std::printf("WRONG %s\n", what);
    }
}

// Checks that a call failed as it should, with these words. A reference, because arguments are
// evaluated in any order: the call that makes the error may be one.
static void refused(torchless_status found, torchless_status expected, torchless_error *&error, const char *words) {
    const char *message = torchless_error_message(error);
    bool is_right = found == expected && torchless_error_status(error) == expected && message && std::strstr(message, words);
    if (!is_right) {
        ++n_failures;
        std::printf("WRONG status %d, `%s` instead of `%s`\n", found, message ? message : "", words);
    }
    torchless_error_free(error);
}

#define SIZE(type) std::printf("layout %s %zu\n", #type, sizeof(type))
#define FIELD(type, field) std::printf("layout %s.%s %zu\n", #type, #field, offsetof(type, field))

static void print_layout() {
    SIZE(torchless_port);
    FIELD(torchless_port, type);
    FIELD(torchless_port, n_axes);
    FIELD(torchless_port, sizes);
    FIELD(torchless_port, size_names);
    SIZE(torchless_input);
    FIELD(torchless_input, type);
    FIELD(torchless_input, n_axes);
    FIELD(torchless_input, shape);
    FIELD(torchless_input, data);
    SIZE(torchless_column);
    FIELD(torchless_column, data);
    FIELD(torchless_column, n_particles);
    FIELD(torchless_column, step);
    SIZE(torchless_ragged);
    FIELD(torchless_ragged, offsets_type);
    FIELD(torchless_ragged, offsets);
    FIELD(torchless_ragged, n_events);
    FIELD(torchless_ragged, columns);
    FIELD(torchless_ragged, n_columns);
    SIZE(torchless_events);
    FIELD(torchless_events, n_dense);
    FIELD(torchless_events, ragged);
    FIELD(torchless_events, n_ragged);
    SIZE(torchless_fraction);
    FIELD(torchless_fraction, fraction);
    SIZE(torchless_score);
    FIELD(torchless_score, column);
    FIELD(torchless_score, transform);
    FIELD(torchless_score, against);
    FIELD(torchless_score, n_against);
    SIZE(torchless_variation);
    FIELD(torchless_variation, events);
    FIELD(torchless_variation, weights_type);
    FIELD(torchless_variation, weights);
    FIELD(torchless_variation, n_weights);
    SIZE(torchless_output);
    FIELD(torchless_output, buffer);
    FIELD(torchless_output, capacity);
    FIELD(torchless_output, buffer_type);
    FIELD(torchless_output, type);
    FIELD(torchless_output, data);
    FIELD(torchless_output, shape);
    FIELD(torchless_output, n_axes);
    std::printf("constants");
    for (int32_t value : std::initializer_list<int32_t>{TORCHLESS_OK, TORCHLESS_NULL_POINTER, TORCHLESS_FILE, TORCHLESS_MODEL, TORCHLESS_INPUT, TORCHLESS_OUTPUT,
                          TORCHLESS_BUSY, TORCHLESS_INTERNAL, TORCHLESS_DEVICE, TORCHLESS_FLOAT32, TORCHLESS_FLOAT64, TORCHLESS_INT64, TORCHLESS_BOOL,
                          TORCHLESS_INT32, TORCHLESS_UINT32, TORCHLESS_MOST_AXES}) {
        std::printf(" %d", value);
    }
    std::printf("\n");
}

struct Jets {
    int64_t n_jets, n_particles;
    std::vector<int64_t> offsets;
    std::vector<float> x, v, padded_x, padded_v;
    std::vector<uint8_t> mask;

    explicit Jets(const char *path) {
        std::FILE *file = std::fopen(path, "rb");
        auto read = [&](auto &numbers, size_t length) {
            numbers.resize(length);
            check(std::fread(numbers.data(), sizeof numbers[0], length, file) == length, "the file of jets");
        };
        std::vector<int64_t> sizes;
        read(sizes, 2);
        n_jets = sizes[0], n_particles = sizes[1];
        read(offsets, n_jets + 1);
        read(x, 5 * n_particles);
        read(v, 4 * n_particles);
        read(padded_x, n_jets * 5 * 20);
        read(padded_v, n_jets * 4 * 20);
        read(mask, n_jets * 20);
        std::fclose(file);
    }
};

// Columns of rows of `width` numbers.
static std::vector<torchless_column> columns(const std::vector<float> &rows, size_t width) {
    std::vector<torchless_column> made;
    for (size_t column = 0; column < width; ++column) {
        made.push_back({TORCHLESS_FLOAT32, rows.data() + column, rows.size() / width, width});
    }
    return made;
}

static torchless_output logits_of_scratch() {
    torchless_output output{};
    output.name = "logits";
    return output;
}

static void check_ports(const torchless_model *model) {
    torchless_error *error = nullptr;
    torchless_port port;
    check(torchless_n_inputs(model) == 3 && torchless_n_outputs(model) == 1, "numbers of ports");
    check(torchless_n_inputs(nullptr) == 0 && torchless_n_outputs(nullptr) == 0, "ports of NULL");
    check(torchless_input_port(model, 2, &port, &error) == TORCHLESS_OK && error == nullptr, "a port");
    check(std::string(port.name) == "mask" && port.type == TORCHLESS_BOOL && port.n_axes == 3, "the mask");
    check(port.sizes[0] == -1 && port.sizes[1] == 1 && std::string(port.size_names[2]) == "particles", "its axes");
    check(torchless_output_port(model, 0, &port, nullptr) == TORCHLESS_OK && std::string(port.name) == "logits", "logits");
    refused(torchless_input_port(model, 3, &port, &error), TORCHLESS_INPUT, error, "there is no input 3");
    refused(torchless_output_port(model, 1, &port, &error), TORCHLESS_OUTPUT, error, "there is no output 1");
    refused(torchless_input_port(nullptr, 0, &port, &error), TORCHLESS_NULL_POINTER, error, "the model is NULL");
    refused(torchless_input_port(model, 0, nullptr, &error), TORCHLESS_NULL_POINTER, error, "the port is NULL");
}

static void check_opening(const char *path) {
    torchless_error *error = nullptr;
    torchless_model *model = nullptr;
    refused(torchless_open("absent.onnx", TORCHLESS_SINGLE, nullptr, 0, &model, &error), TORCHLESS_FILE, error, "`absent.onnx`");
    check(model == nullptr, "no model");
    refused(torchless_open_with_weights(path, TORCHLESS_SINGLE, 4, nullptr, 0, &model, &error), TORCHLESS_INPUT, error, "4 is not a form");
    refused(
        torchless_open_with_weights(path, TORCHLESS_DOUBLE, TORCHLESS_WEIGHTS_F16, nullptr, 0, &model, &error), TORCHLESS_INPUT,
        error, "stored as f16 for single precision only");
    for (torchless_weights form : {TORCHLESS_WEIGHTS_F32, TORCHLESS_WEIGHTS_F16, TORCHLESS_WEIGHTS_BF16, TORCHLESS_WEIGHTS_INT8}) {
        check(
            torchless_open_with_weights(path, TORCHLESS_SINGLE, form, nullptr, 0, &model, &error) == TORCHLESS_OK,
            "a form of weights");
        check(torchless_is_approximate(model) == (form == TORCHLESS_WEIGHTS_INT8), "what is approximate");
        torchless_model_free(model);
    }
    check(torchless_is_approximate(nullptr) == 0, "NULL is not approximate");
    check(torchless_open("absent.onnx", TORCHLESS_SINGLE, nullptr, 0, &model, nullptr) == TORCHLESS_FILE, "without an error object");
    refused(torchless_open(nullptr, TORCHLESS_SINGLE, nullptr, 0, &model, &error), TORCHLESS_NULL_POINTER, error, "the path is NULL");
    refused(torchless_open(path, 7, nullptr, 0, &model, &error), TORCHLESS_INPUT, error, "7 is not a precision");
    refused(torchless_open(path, TORCHLESS_SINGLE, nullptr, 0, nullptr, &error), TORCHLESS_NULL_POINTER, error, "`model`");
    refused(torchless_open(path, TORCHLESS_SINGLE, nullptr, 2, &model, &error), TORCHLESS_NULL_POINTER, error, "`fixed` has 2");
    refused(torchless_open("\xff", TORCHLESS_SINGLE, nullptr, 0, &model, &error), TORCHLESS_INPUT, error, "not UTF-8");
    const int64_t shape[] = {1};
    const float number = 1;
    torchless_input fixed{"bias", TORCHLESS_FLOAT32, 1, shape, &number};
    refused(torchless_open(path, TORCHLESS_SINGLE, &fixed, 1, &model, &error), TORCHLESS_INPUT, error, "`bias`: the model has no such");
    const int64_t one = (int64_t(1) << 53) + 1;
    fixed = {"mask", TORCHLESS_INT64, 1, shape, &one};
    refused(torchless_open(path, TORCHLESS_SINGLE, &fixed, 1, &model, &error), TORCHLESS_INPUT, error, "fixed integers are below 2^53");
}

// Names of devices, what they refuse, and advice in words of C.
static void check_devices(const char *path, const char *refused_path) {
    torchless_error *error = nullptr;
    torchless_model *model = nullptr;
    auto open = [&](const char *of, torchless_precision precision, torchless_weights weights, const char *device) {
        return torchless_open_on_device(of, precision, weights, device, nullptr, 0, &model, &error);
    };
    for (const char *device : {static_cast<const char *>(nullptr), "auto", "cpu"}) {
        check(open(path, TORCHLESS_DOUBLE, TORCHLESS_WEIGHTS_F32, device) == TORCHLESS_OK, "the CPU by its names");
        check(std::string(torchless_device(model)) == "cpu", "the name of the CPU");
        torchless_model_free(model);
    }
    check(torchless_device(nullptr) == nullptr, "the device of NULL");
    auto advised = [&](torchless_status found, torchless_status expected, const char *words, const char *advice) {
        const char *hint = torchless_error_hint(error);
        check(hint && std::strstr(hint, advice), advice);
        refused(found, expected, error, words);
        check(model == nullptr, "no model of a device");
    };
    auto status = open(path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, "gpu");
    advised(status, TORCHLESS_INPUT, "`gpu` is not a device", "it is one of auto, cpu, cuda, metal, opencl");
    status = open(refused_path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, "emulated");
    advised(status, TORCHLESS_MODEL, "node `the angle` (Atan): devices have no kernel for it", "the device `cpu` computes it");
    status = open(path, TORCHLESS_DOUBLE, TORCHLESS_WEIGHTS_F32, "emulated");
    advised(status, TORCHLESS_INPUT, "double precision: encoders compute this on the CPU only", "the device `cpu` computes here");
    status = open(path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F16, "emulated");
    advised(status, TORCHLESS_INPUT, "weights that are not stored in single precision", "the device `cpu`");
    // A driver that is on no machine of this kind.
#ifdef __APPLE__
    const char *absent = "cuda";
#else
    const char *absent = "metal";
#endif
    status = open(path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, absent);
    advised(status, TORCHLESS_DEVICE, (std::string(absent) + " cannot be used: ").c_str(), "the device `cpu` computes here");
    refused(open(path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, "\xff"), TORCHLESS_INPUT, error, "the name of a device is not UTF-8");
}

// Computes `logits` on the emulated device.
static void compute_on_a_device(const char *path, torchless_scratch *scratch, const torchless_events &events, std::vector<float> &logits) {
    torchless_error *error = nullptr;
    torchless_model *model = nullptr;
    torchless_status status =
        torchless_open_on_device(path, TORCHLESS_SINGLE, TORCHLESS_WEIGHTS_F32, "emulated", nullptr, 0, &model, &error);
    check(status == TORCHLESS_OK && std::string(torchless_device(model)) == "emulated", "a model on a device");
    auto output = logits_of_scratch();
    output.buffer = logits.data(), output.capacity = logits.size(), output.buffer_type = TORCHLESS_FLOAT32;
    check(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error) == TORCHLESS_OK, "outputs of a device");
    status = torchless_gradients(model, scratch, &events, "mask", 0, nullptr, 0, &output, 1, nullptr, 0, &error);
    refused(status, TORCHLESS_INPUT, error, "gradients: encoders compute this on the CPU only, and not on emulated");
    torchless_model_free(model);
}

static void check_mistakes(const torchless_model *model, torchless_scratch *scratch, const Jets &jets) {
    torchless_error *error = nullptr;
    auto x = columns(jets.x, 5), v = columns(jets.v, 4);
    auto with_offsets = [&](const int64_t *offsets, size_t n_jets) {
        return std::vector<torchless_ragged>{{"x", TORCHLESS_INT64, offsets, n_jets, x.data(), 5}, {"v", TORCHLESS_INT64, offsets, n_jets, v.data(), 4}};
    };
    auto encode = [&](const std::vector<torchless_ragged> &ragged, const char *mask, torchless_output *output) {
        torchless_events events{nullptr, 0, ragged.data(), ragged.size()};
        return torchless_encode(model, scratch, &events, mask, 0, output, output ? 1 : 0, &error);
    };
    const auto good = with_offsets(jets.offsets.data(), jets.n_jets);
    auto output = logits_of_scratch();
    check(encode(good, "mask", nullptr) == TORCHLESS_OK, "no outputs");
    encode(good, nullptr, &output);
    const char *hint = torchless_error_hint(error);
    check(hint && std::string(hint) == "`torchless_input_port` lists the inputs of a model", "a hint in words of C");
    torchless_error_free(error);
    refused(encode(good, nullptr, &output), TORCHLESS_INPUT, error, "input `mask`: it is not given");
    refused(encode(good, "weights", &output), TORCHLESS_INPUT, error, "input `weights`: the model has no such input");
    output.name = "scores";
    refused(encode(good, "mask", &output), TORCHLESS_OUTPUT, error, "no output `scores`");
    output.name = nullptr;
    refused(encode(good, "mask", &output), TORCHLESS_NULL_POINTER, error, "the name of an output is NULL");
    output = logits_of_scratch();
    std::vector<float> small(4);
    output.buffer = small.data(), output.capacity = small.size(), output.buffer_type = TORCHLESS_FLOAT32;
    refused(encode(good, "mask", &output), TORCHLESS_OUTPUT, error, "36 numbers, and its buffer has room for 4");
    check(output.n_axes == 2 && output.shape[0] == jets.n_jets && output.shape[1] == 3, "the shape is told");
    output.capacity = 36, output.buffer_type = TORCHLESS_FLOAT64;
    refused(encode(good, "mask", &output), TORCHLESS_OUTPUT, error, "of type 1, and its buffer of type 2");
    output = logits_of_scratch();
    auto offsets = jets.offsets;
    offsets[2] = 0;
    refused(encode(with_offsets(offsets.data(), jets.n_jets), "mask", &output), TORCHLESS_INPUT, error, "offset 2 is 0");
    offsets = jets.offsets;
    offsets.back() += 1;
    refused(encode(with_offsets(offsets.data(), jets.n_jets), "mask", &output), TORCHLESS_INPUT, error, "its offsets end at");
    refused(encode(with_offsets(nullptr, jets.n_jets), "mask", &output), TORCHLESS_NULL_POINTER, error, "its pointer is NULL");
    refused(encode(with_offsets(jets.offsets.data(), SIZE_MAX), "mask", &output), TORCHLESS_INPUT, error, "`x` has");
    const char *bytes = reinterpret_cast<const char *>(jets.offsets.data());
    refused(encode(with_offsets(reinterpret_cast<const int64_t *>(bytes + 1), 2), "mask", &output), TORCHLESS_INPUT, error, "not aligned");
    auto wrong = good;
    wrong[1].n_columns = 3;
    refused(encode(wrong, "mask", &output), TORCHLESS_INPUT, error, "each particle has 3 numbers");
    wrong = good;
    wrong[0].offsets_type = TORCHLESS_FLOAT32;
    refused(encode(wrong, "mask", &output), TORCHLESS_INPUT, error, "must be integers");
    wrong = good;
    wrong[0].name = nullptr;
    refused(encode(wrong, "mask", &output), TORCHLESS_NULL_POINTER, error, "the name of a ragged input is NULL");
    v[0].step = 0;
    refused(encode(good, "mask", &output), TORCHLESS_INPUT, error, "the step 0");
    v[0].step = SIZE_MAX;
    refused(encode(good, "mask", &output), TORCHLESS_INPUT, error, "more than memory");
    v[0].step = 4, v[0].type = 99;
    refused(encode(good, "mask", &output), TORCHLESS_INPUT, error, "the type 99");
    v[0].type = TORCHLESS_FLOAT32;
    torchless_events events{nullptr, 0, good.data(), 2};
    refused(torchless_encode(model, nullptr, &events, "mask", 0, &output, 1, &error), TORCHLESS_NULL_POINTER, error, "the scratch is NULL");
    refused(torchless_encode(nullptr, scratch, &events, "mask", 0, &output, 1, &error), TORCHLESS_NULL_POINTER, error, "the model is NULL");
    refused(torchless_encode(model, scratch, nullptr, "mask", 0, &output, 1, &error), TORCHLESS_NULL_POINTER, error, "the structure of events is NULL");
    const int64_t shape[] = {jets.n_jets, 1, 20}, negative[] = {jets.n_jets, 1, -20};
    auto mask = jets.mask;
    mask[5] = 2;
    torchless_input dense{"mask", TORCHLESS_BOOL, 3, shape, mask.data()};
    events = {&dense, 1, nullptr, 0};
    refused(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error), TORCHLESS_INPUT, error, "value 5 of `mask` is 2");
    dense.shape = negative;
    refused(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error), TORCHLESS_INPUT, error, "axis 2 of `mask` has the size -20");
    dense.n_axes = -1;
    refused(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error), TORCHLESS_INPUT, error, "`mask` has -1 axes");
}

// Two threads with one scratch: each call is done, or says that the scratch is busy.
static void check_busy(const torchless_model *model, torchless_scratch *scratch, const torchless_events &events) {
    auto many = [&] {
        for (int call = 0; call < 200; ++call) {
            torchless_error *error = nullptr;
            torchless_status status = torchless_encode(model, scratch, &events, "mask", 0, nullptr, 0, &error);
            if (status != TORCHLESS_OK) {
                refused(status, TORCHLESS_BUSY, error, "another thread is using the scratch");
            }
        }
    };
    std::thread other(many);
    many();
    other.join();
}

// The logits of one model, in the scratch's memory, are the input of the next model.
static void check_chain(const torchless_model *model, torchless_scratch *scratch, const torchless_events &events, std::string path) {
    torchless_error *error = nullptr;
    torchless_model *next = nullptr;
    path.replace(path.rfind("part.onnx"), std::string::npos, "mlp.onnx");
    check(torchless_open(path.c_str(), TORCHLESS_SINGLE, nullptr, 0, &next, &error) == TORCHLESS_OK, "the next model");
    auto first = logits_of_scratch(), chained = logits_of_scratch(), expected = logits_of_scratch();
    check(torchless_encode(model, scratch, &events, "mask", 0, &first, 1, &error) == TORCHLESS_OK, "the first model");
    const float *numbers = static_cast<const float *>(first.data);
    const std::vector<float> copy(numbers, numbers + first.shape[0] * first.shape[1]);
    torchless_input x{"x", TORCHLESS_FLOAT32, 2, first.shape, numbers};
    const torchless_events of_scratch{&x, 1, nullptr, 0};
    check(torchless_encode(next, scratch, &of_scratch, nullptr, 0, &chained, 1, &error) == TORCHLESS_OK, "outputs as inputs");
    numbers = static_cast<const float *>(chained.data);
    const std::vector<float> found(numbers, numbers + chained.shape[0] * chained.shape[1]);
    x.data = copy.data();
    check(torchless_encode(next, scratch, &of_scratch, nullptr, 0, &expected, 1, &error) == TORCHLESS_OK, "copies as inputs");
    check(std::memcmp(found.data(), expected.data, found.size() * sizeof(float)) == 0, "the same bits of outputs as inputs");
    torchless_model_free(next);
}

// Gradients are the change of a logit with a feature, and refuse what has none.
static void check_gradients(const torchless_model *model, torchless_scratch *scratch, const Jets &jets) {
    torchless_error *error = nullptr;
    auto values = jets.x;
    auto x = columns(values, 5), v = columns(jets.v, 4);
    const torchless_ragged ragged[] = {{"v", TORCHLESS_INT64, jets.offsets.data(), size_t(jets.n_jets), v.data(), 4},
                                       {"x", TORCHLESS_INT64, jets.offsets.data(), size_t(jets.n_jets), x.data(), 5}};
    const torchless_events events{nullptr, 0, ragged, 2};
    torchless_output output = logits_of_scratch(), gradient = logits_of_scratch();
    gradient.name = "x";
    auto call = [&](const char *name, size_t column, torchless_output *of_x) {
        return torchless_gradients(model, scratch, &events, "mask", 0, name, column, &output, 1, of_x, 1, &error);
    };
    check(call(nullptr, 1, &gradient) == TORCHLESS_OK, "gradients");
    check(gradient.type == TORCHLESS_FLOAT64 && gradient.n_axes == 2 && gradient.shape[1] == 5, "rows of particles");
    check(gradient.shape[0] == jets.offsets[jets.n_jets], "a row of each particle");
    const double derivative = static_cast<const double *>(gradient.data)[2];
    const float before = static_cast<const float *>(output.data)[1], step = 0.01f;
    std::vector<double> buffer(size_t(gradient.shape[0]) * 5);
    gradient.buffer = buffer.data(), gradient.capacity = buffer.size(), gradient.buffer_type = TORCHLESS_FLOAT64;
    check(call("logits", 1, &gradient) == TORCHLESS_OK && buffer[2] == derivative, "gradients in our memory");
    values[2] += step;
    check(call("logits", 1, &gradient) == TORCHLESS_OK, "other features");
    const float after = static_cast<const float *>(output.data)[1];
    const double expected = 0.5 * (derivative + buffer[2]) * step;
    check(std::fabs(after - before - expected) < 1e-5, "the change of a logit");
    refused(call("logits", 3, &gradient), TORCHLESS_OUTPUT, error, "no column 3");
    refused(call("score", 0, &gradient), TORCHLESS_OUTPUT, error, "no output `score`");
    // Before anything is computed, which would find that there is no column 99.
    gradient.buffer_type = TORCHLESS_FLOAT32;
    refused(call(nullptr, 99, &gradient), TORCHLESS_OUTPUT, error, "its buffer of type 1");
    gradient.name = "mask";
    refused(call(nullptr, 99, &gradient), TORCHLESS_OUTPUT, error, "the input `mask` has no gradient");
}

// Sums of weights and of their squares, as a program without histograms would have them: below all
// edges, in the bins, above.
struct Sums {
    std::vector<double> values, variances;

    Sums(const std::vector<double> &edges, const std::vector<double> &scores, const std::vector<double> &weights)
        : values(edges.size() + 1), variances(edges.size() + 1) {
        for (size_t event = 0; event < scores.size(); ++event) {
            size_t bin = 0;
            while (bin < edges.size() && scores[event] >= edges[bin]) {
                ++bin;
            }
            values[bin] += weights[event];
            variances[bin] += weights[event] * weights[event];
        }
    }
};

// Histograms of a logit, with a variation of inputs and one of weights, filled in two calls.
static void check_histograms(const torchless_model *model, torchless_scratch *scratch, const Jets &jets) {
    torchless_error *error = nullptr;
    const size_t n_jets = size_t(jets.n_jets), n_first = 5;
    std::vector<float> scaled = jets.x;
    for (float &number : scaled) {
        number *= 1.5f;
    }
    const auto x = columns(jets.x, 5), v = columns(jets.v, 4), varied = columns(scaled, 5);
    auto ragged = [&](const std::vector<torchless_column> &of_x, size_t first, size_t n) {
        return std::vector<torchless_ragged>{{"x", TORCHLESS_INT64, jets.offsets.data() + first, n, of_x.data(), 5},
                                             {"v", TORCHLESS_INT64, jets.offsets.data() + first, n, v.data(), 4}};
    };
    auto scores = [&](const std::vector<torchless_column> &of_x) {
        const auto inputs = ragged(of_x, 0, n_jets);
        const torchless_events events{nullptr, 0, inputs.data(), 2};
        auto output = logits_of_scratch();
        check(torchless_encode(model, scratch, &events, "mask", 0, &output, 1, &error) == TORCHLESS_OK, "scores");
        const float *logits = static_cast<const float *>(output.data);
        std::vector<double> found;
        for (size_t jet = 0; jet < n_jets; ++jet) {
            found.push_back(logits[3 * jet + 1]);
        }
        return found;
    };
    // Halves, of which sums are exact in any order.
    std::vector<double> weights, other_weights;
    for (size_t jet = 0; jet < n_jets; ++jet) {
        weights.push_back(1 + 0.5 * (jet % 3)), other_weights.push_back(2 - 0.5 * (jet % 4));
    }
    const auto nominal_scores = scores(x), varied_scores = scores(varied);
    auto sorted = nominal_scores;
    std::sort(sorted.begin(), sorted.end());
    const std::vector<double> edges{sorted[2], sorted[5], sorted[9]};
    torchless_score score{"logits", 1, TORCHLESS_NUMBER, nullptr, 0};
    torchless_histograms *histograms = nullptr;
    auto make = [&](const double *from, size_t n_edges, int32_t flow) {
        return torchless_histograms_new(from, n_edges, &score, flow, &histograms, &error);
    };
    refused(make(edges.data(), 1, 0), TORCHLESS_INPUT, error, "edges");
    refused(make(edges.data(), 3, 2), TORCHLESS_INPUT, error, "2 does not say what happens");
    refused(make(nullptr, 3, 0), TORCHLESS_NULL_POINTER, error, "`edges` has 3");
    const torchless_fraction half{0, 0.5};
    score.against = &half, score.n_against = 1;
    refused(make(edges.data(), 3, 0), TORCHLESS_INPUT, error, "`against` goes with ratios");
    score.against = nullptr, score.n_against = 0, score.transform = 4;
    refused(make(edges.data(), 3, 0), TORCHLESS_INPUT, error, "4 is not a transform");
    check(histograms == nullptr, "no histograms");
    score.transform = TORCHLESS_NUMBER;
    check(make(edges.data(), 3, 0) == TORCHLESS_OK, "histograms");
    auto fill = [&](size_t first, size_t n, const char *of_weights, size_t n_weights) {
        const auto inputs = ragged(x, first, n), changed = ragged(varied, first, n);
        const torchless_variation nominal{nullptr, {nullptr, 0, inputs.data(), 2}, TORCHLESS_FLOAT64, weights.data() + first, n};
        const torchless_variation variations[] = {
            {"scale_up", {nullptr, 0, changed.data(), 1}, 0, nullptr, 0},
            {of_weights, {nullptr, 0, nullptr, 0}, TORCHLESS_FLOAT64, other_weights.data() + first, n_weights}};
        return torchless_histograms_fill(histograms, model, scratch, &nominal, variations, 2, "mask", 0, &error);
    };
    check(fill(0, n_first, "pileup_up", n_first) == TORCHLESS_OK, "the first jets");
    refused(fill(n_first, n_jets - n_first, "pileup_up", 2), TORCHLESS_INPUT, error, "`pileup_up`");
    refused(fill(n_first, n_jets - n_first, "pileup", n_jets - n_first), TORCHLESS_INPUT, error, "pileup");
    refused(fill(n_first, n_jets - n_first, nullptr, n_jets - n_first), TORCHLESS_NULL_POINTER, error, "the name of a variation is NULL");
    check(fill(n_first, n_jets - n_first, "pileup_up", n_jets - n_first) == TORCHLESS_OK, "the other jets");
    auto compare = [&](const char *name, const Sums &expected) {
        double values[2], variances[2], underflow[2], overflow[2];
        torchless_status status = torchless_histogram(histograms, name, values, variances, 2, underflow, overflow, &error);
        check(status == TORCHLESS_OK, "a histogram");
        const std::vector<double> found{underflow[0], values[0], values[1], overflow[0]};
        const std::vector<double> squares{underflow[1], variances[0], variances[1], overflow[1]};
        check(found == expected.values && squares == expected.variances, name ? name : "nominal sums");
        check(torchless_histogram(histograms, name, values, variances, 2, nullptr, nullptr, &error) == TORCHLESS_OK, "no flow");
    };
    compare(nullptr, Sums(edges, nominal_scores, weights));
    compare("scale_up", Sums(edges, varied_scores, weights));
    compare("pileup_up", Sums(edges, nominal_scores, other_weights));
    double numbers[3];
    auto read = [&](const char *name, double *values, size_t n_bins) {
        return torchless_histogram(histograms, name, values, numbers, n_bins, nullptr, nullptr, &error);
    };
    refused(read("jes_up", numbers, 2), TORCHLESS_INPUT, error, "there is no variation `jes_up`");
    refused(read(nullptr, numbers, 3), TORCHLESS_OUTPUT, error, "have 2 bins");
    refused(read(nullptr, nullptr, 2), TORCHLESS_NULL_POINTER, error, "`values` has 2");
    torchless_histograms_free(histograms);
    torchless_histograms_free(nullptr);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        return 2;
    }
    print_layout();
    check(std::strlen(torchless_version()) >= 5, "the version");
    check_opening(argv[1]);
    check_devices(argv[1], argv[4]);
    torchless_error *error = nullptr;
    torchless_model *model = nullptr;
    torchless_scratch *scratch = nullptr;
    check(torchless_open(argv[1], TORCHLESS_SINGLE, nullptr, 0, &model, &error) == TORCHLESS_OK, "a model");
    refused(torchless_scratch_new(1, nullptr, &error), TORCHLESS_NULL_POINTER, error, "`scratch`");
    check(torchless_scratch_new(2, &scratch, &error) == TORCHLESS_OK, "a scratch");
    check_ports(model);
    const Jets jets(argv[2]);
    check_mistakes(model, scratch, jets);
    auto x = columns(jets.x, 5), v = columns(jets.v, 4);
    const torchless_ragged ragged[] = {{"v", TORCHLESS_INT64, jets.offsets.data(), size_t(jets.n_jets), v.data(), 4},
                                       {"x", TORCHLESS_INT64, jets.offsets.data(), size_t(jets.n_jets), x.data(), 5}};
    torchless_events events{nullptr, 0, ragged, 2};
    check_busy(model, scratch, events);
    check_chain(model, scratch, events, argv[1]);
    check_gradients(model, scratch, jets);
    check_histograms(model, scratch, jets);
    // Ragged, into our memory.
    std::vector<float> logits(3 * jets.n_jets + 1, -7.0f);
    auto output = logits_of_scratch();
    output.buffer = logits.data(), output.capacity = logits.size(), output.buffer_type = TORCHLESS_FLOAT32;
    check(torchless_encode(model, scratch, &events, "mask", 5, &output, 1, &error) == TORCHLESS_OK, "ragged events");
    check(output.data == logits.data() && output.type == TORCHLESS_FLOAT32 && logits.back() == -7.0f, "the buffer");
    // Padded, into the scratch's memory.
    const int64_t of_x[] = {jets.n_jets, 5, 20}, of_v[] = {jets.n_jets, 4, 20}, of_mask[] = {jets.n_jets, 1, 20};
    const torchless_input dense[] = {{"x", TORCHLESS_FLOAT32, 3, of_x, jets.padded_x.data()},
                                     {"v", TORCHLESS_FLOAT32, 3, of_v, jets.padded_v.data()},
                                     {"mask", TORCHLESS_BOOL, 3, of_mask, jets.mask.data()}};
    events = {dense, 3, nullptr, 0};
    for (const char *mask : {static_cast<const char *>(nullptr), "mask"}) {
        auto padded = logits_of_scratch();
        check(torchless_encode(model, scratch, &events, mask, 0, &padded, 1, &error) == TORCHLESS_OK, "padded events");
        check(std::memcmp(padded.data, logits.data(), 3 * jets.n_jets * sizeof(float)) == 0, "the same bits with padding");
    }
    std::vector<float> of_device(3 * jets.n_jets);
    compute_on_a_device(argv[1], scratch, events, of_device);
    std::FILE *file = std::fopen(argv[3], "wb");
    std::fwrite(logits.data(), sizeof(float), 3 * jets.n_jets, file);
    std::fwrite(of_device.data(), sizeof(float), 3 * jets.n_jets, file);
    std::fclose(file);
    torchless_scratch_free(scratch);
    torchless_model_free(model);
    torchless_scratch_free(nullptr);
    torchless_model_free(nullptr);
    torchless_error_free(nullptr);
    check(torchless_error_message(nullptr) == nullptr && torchless_error_hint(nullptr) == nullptr, "texts of NULL");
    std::printf(n_failures ? "%d checks failed\n" : "every check passed\n", n_failures);
    return n_failures != 0;
}
