/* Encoders of events from ONNX files, and histograms of their scores, for C and C++: the library
 * torchless_c.
 *
 * A model is immutable, and any number of threads may share it. A scratch is the memory of one
 * thread. Nothing else is shared that a caller sees: the verdicts on devices, which are tested once
 * in a process, and OpenCL's compiled programs on disk are kept. No function keeps a pointer that it was given, except where its
 * comment says so.
 *
 * Functions that can fail return a `torchless_status`, TORCHLESS_OK or the kind of the error, and
 * take `error`. It may be NULL. If it is not, *error is NULL after success; after a failure it
 * is an error of the caller's, to be freed with `torchless_error_free`. What *error was before is
 * not looked at.
 *
 * NULL where an object, a name or numbers are needed is TORCHLESS_NULL_POINTER. Pointers must be
 * aligned for their type; others are TORCHLESS_INPUT. Text is UTF-8 and ends with a zero byte.
 * That a pointer leads to as many numbers as a structure says, and that an object was not freed,
 * cannot be checked.
 */
#ifndef TORCHLESS_H
#define TORCHLESS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kinds of errors. */
typedef int32_t torchless_status;
enum {
    TORCHLESS_OK = 0,
    TORCHLESS_NULL_POINTER = 1, /* a pointer that must not be NULL */
    TORCHLESS_FILE = 2,         /* a file that cannot be read, or that is not ONNX */
    TORCHLESS_MODEL = 3,        /* an operator or a shape that is not computed */
    TORCHLESS_INPUT = 4,        /* inputs that do not fit the model or each other */
    TORCHLESS_OUTPUT = 5,       /* an output that the model does not have, or memory for it that is too small */
    TORCHLESS_BUSY = 6,         /* a scratch, or histograms, that another thread is using */
    TORCHLESS_INTERNAL = 7,     /* a defect of the library; the call has done nothing */
    TORCHLESS_DEVICE = 8        /* a device that is not there, or that fails */
};

/* Types of numbers. */
typedef int32_t torchless_type;
enum {
    TORCHLESS_FLOAT32 = 1,
    TORCHLESS_FLOAT64 = 2,
    TORCHLESS_INT64 = 3,
    TORCHLESS_BOOL = 4,  /* bytes that are 0 or 1 */
    TORCHLESS_INT32 = 5, /* offsets only */
    TORCHLESS_UINT32 = 6 /* offsets only */
};

/* Numbers in which a model is computed. */
typedef int32_t torchless_precision;
enum {
    TORCHLESS_SINGLE = 0, /* and in double precision before the first product */
    TORCHLESS_DOUBLE = 1  /* throughout, by plain loops: a reference, and slow */
};

/* How the matrices of a model are stored. */
typedef int32_t torchless_weights;
enum {
    TORCHLESS_WEIGHTS_F32 = 0,  /* single precision */
    TORCHLESS_WEIGHTS_F16 = 1,  /* half precision: half the memory */
    TORCHLESS_WEIGHTS_BF16 = 2, /* bfloat16: half the memory */
    TORCHLESS_WEIGHTS_INT8 = 3  /* APPROXIMATE: weights and inputs of products are rounded to bytes */
};

typedef struct torchless_model torchless_model;
typedef struct torchless_scratch torchless_scratch;
typedef struct torchless_histograms torchless_histograms;
typedef struct torchless_error torchless_error;

/* The most axes of an output. */
#define TORCHLESS_MOST_AXES 8

/* What a model declares of an input or an output. The pointers belong to the model. */
typedef struct torchless_port {
    const char *name;
    /* Of inputs: TORCHLESS_FLOAT32 (FLOAT64 is taken, too), TORCHLESS_INT64 or TORCHLESS_BOOL. */
    torchless_type type;
    /* Axes, or -1 if the model declares no shape. */
    int32_t n_axes;
    /* Their sizes (n_axes); -1 where the caller chooses. */
    const int64_t *sizes;
    /* The names of sizes that the caller chooses (n_axes); "" where there is none. */
    const char *const *size_names;
} torchless_port;

/* An input whose events have one shape. The first axis is that of events. */
typedef struct torchless_input {
    const char *name;
    torchless_type type;
    /* Axes. */
    int32_t n_axes;
    /* Their sizes (n_axes). */
    const int64_t *shape;
    /* The numbers, the last axis running fastest: as many as the product of the sizes. */
    const void *data;
} torchless_input;

/* One number of every particle. Of a vector of structures `data` is the address of a member of the
 * first one, and `step` is the size of a structure in sizes of the member; of an array it is 1. */
typedef struct torchless_column {
    torchless_type type;
    const void *data;
    /* Particles of all events. */
    size_t n_particles;
    /* Numbers of `type` from a particle to the next: not 0, and 1 for TORCHLESS_BOOL. */
    size_t step;
} torchless_column;

/* An input whose events have different numbers of particles, which lie one after another: event e
 * has the particles offsets[e] to offsets[e + 1] - 1. */
typedef struct torchless_ragged {
    const char *name;
    /* TORCHLESS_INT32, TORCHLESS_UINT32 or TORCHLESS_INT64. */
    torchless_type offsets_type;
    /* n_events + 1 numbers that do not decrease. The first need not be 0. */
    const void *offsets;
    size_t n_events;
    /* Columns, in the order of the model's axes without those of events and particles. */
    const torchless_column *columns;
    size_t n_columns;
} torchless_ragged;

/* Inputs of many events: each input of the model once, in one of both. The mask of ragged inputs
 * may be left out: it is 1 for every particle. */
typedef struct torchless_events {
    const torchless_input *dense;
    size_t n_dense;
    const torchless_ragged *ragged;
    size_t n_ragged;
} torchless_events;

/* An output that is asked for. */
typedef struct torchless_output {
    /* Set by the caller: its name in the model. */
    const char *name;
    /* Set by the caller: memory for its numbers, or NULL for memory of the scratch. */
    void *buffer;
    /* Set by the caller: the numbers, of `buffer_type`, for which `buffer` has room. */
    size_t capacity;
    /* Set by the caller if `buffer` is not NULL: TORCHLESS_FLOAT32, or TORCHLESS_FLOAT64 for a
     * model of double precision, or TORCHLESS_INT64 for integers and truth values. */
    torchless_type buffer_type;
    /* Set by the call: the type of `data`. */
    torchless_type type;
    /* Set by the call: the numbers, the last axis running fastest. That is `buffer`, or memory
     * that is valid until the next call that has the scratch returns, or the scratch is freed: an
     * output of one model may be an input of the next. NULL after a failure. */
    const void *data;
    /* Set by the call: its axes, the first of which is that of events. They are set, too, if the
     * buffer is too small. */
    int64_t shape[TORCHLESS_MOST_AXES];
    int32_t n_axes;
} torchless_output;

/* Returns the version of the library, such as "0.2.0". The text is never freed. */
const char *torchless_version(void);

/* Opens `path`, an ONNX file (opsets 13 to 21) or a folder with model.safetensors and config.json,
 * and writes the model to *model.
 *
 * `fixed` (n_fixed, may be NULL if that is 0) are inputs that are always the same; they may decide
 * on shapes. Their first axis is an axis like others. The model has one input less for each.
 *
 * Errors: TORCHLESS_FILE, TORCHLESS_MODEL with the name of the node, TORCHLESS_INPUT for a fixed
 * input or a precision that does not exist. *model is NULL then. */
torchless_status torchless_open(
    const char *path, torchless_precision precision, const torchless_input *fixed, size_t n_fixed,
    torchless_model **model, torchless_error **error);

/* The same, with matrices that are stored as `weights` says. A file that holds numbers of two bytes
 * loses nothing in that form: the outputs are the bits of TORCHLESS_WEIGHTS_F32.
 *
 * Errors: TORCHLESS_MODEL with the name of a tensor that has a number which the form does not have;
 * TORCHLESS_INPUT for a form that does not exist, and for another than TORCHLESS_WEIGHTS_F32 with
 * TORCHLESS_DOUBLE. */
torchless_status torchless_open_with_weights(
    const char *path, torchless_precision precision, torchless_weights weights, const torchless_input *fixed,
    size_t n_fixed, torchless_model **model, torchless_error **error);

/* The same, computed by `device`: "cpu", "cuda", "opencl" or "metal"; "auto" and NULL are the CPU.
 * Outputs on a device are near those of the CPU, and not their bits. An event's bits depend on
 * nothing but the device, as they do on the CPU. Calls of several threads take turns there. It has
 * single precision, weights of TORCHLESS_WEIGHTS_F32 and no gradients. No step is computed on the
 * CPU instead. Devices were never tried with a GPU.
 *
 * Errors: TORCHLESS_INPUT for another name, with a list of names, and for another precision or form
 * of weights; TORCHLESS_DEVICE for a device that is not there, or that computes something
 * else than the CPU; TORCHLESS_MODEL with the name of a node that the device does not compute.
 * Where that depends on shapes, it is an error of torchless_encode. */
torchless_status torchless_open_on_device(
    const char *path, torchless_precision precision, torchless_weights weights, const char *device,
    const torchless_input *fixed, size_t n_fixed, torchless_model **model, torchless_error **error);

/* Returns the name of what computes a model: "cpu", or that of its device. The text belongs to the
 * model. NULL for NULL. */
const char *torchless_device(const torchless_model *model);

/* Returns 1 for a model that was opened with TORCHLESS_WEIGHTS_INT8; else 0, also for NULL. */
int32_t torchless_is_approximate(const torchless_model *model);

/* Frees a model that no thread uses; NULL is allowed. */
void torchless_model_free(torchless_model *model);

/* Returns the number of inputs or outputs; 0 for NULL. */
size_t torchless_n_inputs(const torchless_model *model);
size_t torchless_n_outputs(const torchless_model *model);

/* Writes what the model declares of input or output `index`, which counts from 0, to *port.
 *
 * Errors: TORCHLESS_INPUT or TORCHLESS_OUTPUT if there is no such index. */
torchless_status torchless_input_port(
    const torchless_model *model, size_t index, torchless_port *port, torchless_error **error);
torchless_status torchless_output_port(
    const torchless_model *model, size_t index, torchless_port *port, torchless_error **error);

/* Writes a scratch to *scratch, which computes with `n_threads` threads: 1 is the caller's own, 0
 * as many as the machine has. A scratch may be used with one model after another.
 *
 * Errors: none but TORCHLESS_NULL_POINTER. */
torchless_status torchless_scratch_new(size_t n_threads, torchless_scratch **scratch, torchless_error **error);

/* Frees a scratch that no thread uses, and the outputs in its memory; NULL is allowed. */
void torchless_scratch_free(torchless_scratch *scratch);

/* Computes `outputs` (n_outputs) for `events`.
 *
 * `mask` is the name of the input that is 1 for particles and 0 for padding, or NULL if there is
 * none: padded events are cut to their lengths, and ragged ones of different lengths are computed
 * together. A mask that is 1 only where all other inputs of several events are 0, and 0 where they
 * are not, is inverted, and refused. `events_at_once` events are computed together, at most; 0 is
 * 16. An event's bits do not depend on either, nor on its neighbours, the number of threads, or
 * whether it is ragged or padded.
 *
 * An output with an axis of particles is as long as the longest event, or as the padded inputs,
 * with zeros behind shorter events.
 *
 * Errors: TORCHLESS_INPUT for inputs that are missing, unknown or given twice, of the wrong type or
 * shape, for offsets that decrease or leave their particles, for a mask that is inverted, for an
 * index that is out of range, with its input and event; TORCHLESS_MODEL for shapes that the
 * model's operators do not take, or for which a device has no kernel; TORCHLESS_DEVICE for a device
 * that fails; TORCHLESS_OUTPUT for an unknown output, or a buffer of the wrong type or size;
 * TORCHLESS_BUSY if another thread uses the scratch. */
torchless_status torchless_encode(
    const torchless_model *model, torchless_scratch *scratch, const torchless_events *events,
    const char *mask, size_t events_at_once,
    torchless_output *outputs, size_t n_outputs, torchless_error **error);

/* Computes `outputs` as torchless_encode does, the same bits, and `gradients` (n_gradients) of one
 * number of each event with respect to the event's inputs: of the output `differentiated`, or of
 * the only one if it is NULL, the number at `column`, from 0.
 *
 * The name of a gradient is that of an input that is made of numbers and is not the mask. Its
 * numbers are TORCHLESS_FLOAT64, in the shape of the input with 0 for padding; of a ragged input
 * they are a row of each particle of the events, [particles, columns]. What is said of the memory
 * and the bits of outputs holds for gradients. The two arrays do not overlap.
 *
 * Errors: those of torchless_encode; TORCHLESS_OUTPUT for an output or a column that the model does
 * not have, and an input that has no gradient, before anything is computed; TORCHLESS_MODEL for an
 * operator whose derivative is not computed; TORCHLESS_INPUT for a model on a device. */
torchless_status torchless_gradients(
    const torchless_model *model, torchless_scratch *scratch, const torchless_events *events,
    const char *mask, size_t events_at_once, const char *differentiated, size_t column,
    torchless_output *outputs, size_t n_outputs,
    torchless_output *gradients, size_t n_gradients, torchless_error **error);

/* What is made of a number x_c of an event's output, with the other numbers x_k of that output and
 * fractions f_k, in double precision. */
typedef int32_t torchless_transform;
enum {
    TORCHLESS_NUMBER = 0,                    /* x_c */
    TORCHLESS_SOFTMAX = 1,                   /* exp x_c / sum_k exp x_k, of logits */
    TORCHLESS_LOG_RATIO = 2,                 /* x_c - ln sum_k f_k exp x_k, of logits */
    TORCHLESS_LOG_RATIO_OF_PROBABILITIES = 3 /* ln x_c - ln sum_k f_k x_k */
};

/* The fraction f_k of a column k. */
typedef struct torchless_fraction {
    size_t column;
    double fraction;
} torchless_fraction;

/* Which number of a model's outputs is the score of an event. */
typedef struct torchless_score {
    /* The output; NULL for the only one. */
    const char *output;
    /* The column c, from 0: of an event's numbers of that output, all in order. */
    size_t column;
    torchless_transform transform;
    /* The columns that are summed (n_against), for ratios only. */
    const torchless_fraction *against;
    size_t n_against;
} torchless_score;

/* Nominal events, or what a variation of them has of its own; the rest is nominal. */
typedef struct torchless_variation {
    /* The name of a variation; of nominal events it is not looked at. */
    const char *name;
    /* The nominal inputs, or those that differ. */
    torchless_events events;
    /* TORCHLESS_FLOAT32 or TORCHLESS_FLOAT64, if there are weights. */
    torchless_type weights_type;
    /* A weight of each event, or NULL with n_weights 0: 1 for nominal events, and the nominal
     * weights for a variation. An event of weight 0 counts nowhere. */
    const void *weights;
    size_t n_weights;
} torchless_variation;

/* Writes empty histograms of a score to *histograms, with one axis: bin b has the scores from
 * edges[b] (included) to edges[b + 1] (excluded), the first and the last of n_edges edges may be
 * infinite. `score` may be NULL: the first number of the only output. `merges_flow` is 1 if events
 * outside of all bins join the first and the last bin, and 0 if they are apart.
 *
 * Errors: TORCHLESS_INPUT for edges that do not ascend, or fewer than two, and for a transform that
 * does not exist. *histograms is NULL then. */
torchless_status torchless_histograms_new(
    const double *edges, size_t n_edges, const torchless_score *score, int32_t merges_flow,
    torchless_histograms **histograms, torchless_error **error);

/* Frees histograms that no thread uses; NULL is allowed. */
void torchless_histograms_free(torchless_histograms *histograms);

/* Adds events to the nominal histogram and to that of each variation, in one pass: scores are
 * computed once for the nominal inputs, and once for each variation with inputs. All calls have the
 * same variations. Sums are exact until they are read: no bit depends on the order of events, on
 * how they are divided into calls, or on the number of threads. A call that fails adds nothing.
 * The mask and `events_at_once` are those of torchless_encode.
 *
 * Errors: those of torchless_encode; TORCHLESS_INPUT for weights that are not finite or not as many
 * as events, for scores that are NaN, and for variations that differ from those before; the message
 * has the name of the variation. TORCHLESS_BUSY if another thread uses the scratch or the
 * histograms. */
torchless_status torchless_histograms_fill(
    torchless_histograms *histograms, const torchless_model *model, torchless_scratch *scratch,
    const torchless_variation *nominal, const torchless_variation *variations, size_t n_variations,
    const char *mask, size_t events_at_once, torchless_error **error);

/* Writes the sums of weights and of their squares in each bin to `values` and `variances` (n_bins
 * each): of a variation, or for NULL of the nominal events. Both sums below the first edge go to
 * `underflow` (2), those from the last one on to `overflow` (2); each may be NULL.
 *
 * Errors: TORCHLESS_INPUT for an unknown variation, TORCHLESS_OUTPUT for another number of bins,
 * TORCHLESS_BUSY if another thread fills or reads the histograms. */
torchless_status torchless_histogram(
    torchless_histograms *histograms, const char *variation, double *values, double *variances, size_t n_bins,
    double *underflow, double *overflow, torchless_error **error);

/* Returns what kind of error it is; TORCHLESS_OK for NULL. */
torchless_status torchless_error_status(const torchless_error *error);

/* Returns the message, or one line of advice, which is NULL if there is none. The text belongs to
 * the error. Both are NULL for NULL. */
const char *torchless_error_message(const torchless_error *error);
const char *torchless_error_hint(const torchless_error *error);

/* Frees an error and its texts; NULL is allowed. */
void torchless_error_free(torchless_error *error);

#ifdef __cplusplus
}
#endif
#endif
