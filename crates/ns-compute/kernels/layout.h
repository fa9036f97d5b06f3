// Generated from src/accel/layout_fields.rs by the build script; do not edit.

// Sizes and rules of a model, the offsets of its tables, and those of a block's working memory
// (`work_`).
STRUCT(Layout) {
    uint n_params;  // P
    uint n_bins;  // B
    uint n_channels;  // C
    uint n_templates;  // T
    uint n_cells;  // cells: bins of templates
    uint n_scalars;  // scalar modifiers: normfactor, lumi, normsys
    uint n_weights;  // parameters of histosys modifiers
    uint n_histosys;  // histosys modifiers
    uint n_terms;  // K
    uint n_global;  // G
    uint n_local;  // L
    uint matrix_stride;  // row length of the matrix of the global parameters
    uint panel_stride;  // row length of a panel's transposed copy
    uint workspace;  // numbers that a block works with
    uint normsys_rule;  // which interpolation normsys modifiers have
    uint histosys_rule;  // which interpolation histosys modifiers have
    uint channel_bin;  // first bin of each channel (C + 1)
    uint channel_template;  // first template of each channel (C + 1)
    uint channel_column;  // first column of each channel (C + 1)
    uint channel_stride;  // row length of each channel's Jacobian (C)
    uint channel_jacobian;  // offset of each channel's Jacobian (C)
    uint channel_pairs;  // offset of each channel's pairs of rows (C)
    uint channel_dots;  // offset of each channel's products of rows (C)
    uint channel_factor;  // first per-bin factor of each channel that is shared with others (C + 1)
    uint factor_column;  // its column, counted inside the channel
    uint channel_mask;  // offset of each channel's slot masks (C)
    uint slot_mask;  // whether a template has the local factor of a slot: slots by templates, for each channel
    uint bin_channel;  // channel of each bin (B)
    uint bin_local;  // first local parameter of each bin (B + 1)
    uint bin_block;  // offset of each bin's block of local parameters (B)
    uint template_channel;  // channel of each template (T)
    uint template_cell;  // first cell of each template (T)
    uint template_scalar;  // first scalar modifier of each template (T + 1)
    uint template_histosys;  // first histosys of each template (T + 1)
    uint template_factor;  // first per-bin modifier of each template (T + 1)
    uint cell_template;  // template of each cell
    uint scalar_param;  // parameter of each scalar modifier
    uint scalar_normsys;  // its normsys, or none
    uint weight_param;  // parameters of histosys modifiers
    uint histosys_weight;  // which of those parameters each histosys has
    uint histosys_cell;  // offset of each histosys in the template differences
    uint histosys_template;  // template of each histosys
    uint factor_param;  // parameter of the channel's first bin, for each per-bin modifier
    uint term_param;  // parameter of each constraint term (K)
    uint term_is_poisson;  // 1 for a Poisson term (K)
    uint param_term;  // constraint term of each parameter, or none (P)
    uint global_param;  // parameter of each global position (G)
    uint local_param;  // parameter of each local position (L)
    uint local_bin;  // bin of each local position (L)
    uint local_coupling;  // offset of each local position's coupling row (L)
    uint local_entry;  // first of the templates that have each local parameter (L + 1)
    uint local_template;  // those templates
    uint column_position;  // global position of each column
    uint column_entry;  // first entry of each column, and the end
    uint entry_kind;  // kind of each entry: scalar, histosys or per-bin factor
    uint entry_use;  // which modifier of that kind it is
    uint entry_template;  // template of each entry
    uint entry_bin;  // bin of a per-bin factor, counted inside the channel
    uint position_column;  // first column of each global position (G + 1)
    uint use_channel;  // channel of those columns
    uint use_column;  // column inside that channel
    uint normsys;  // ln hi, ln lo and six coefficients of each normsys
    uint nominal;  // nominal yields of all cells
    uint up;  // template differences hi - nominal
    uint down;  // template differences lo - nominal
    uint term_scale;  // width of a Gaussian, rate of a Poisson term (K)
    uint n_inputs;  // M, the inputs of a model whose templates are replaced; 0 without
    uint n_row_reals;  // numbers that every set of templates has its own copy of
    uint input_kind;  // kind of each input (M)
    uint input_template;  // template of each input (M)
    uint input_place;  // its cell, or of a factor its normsys (M)
    uint input_use;  // its histosys, or of a factor its scalar modifier; unused for nominal yields (M)
    uint histosys_hi;  // first input of the yields at +1 of each histosys, or none
    uint histosys_lo;  // first input of the yields at -1 of each histosys, or none
    uint fixed_up;  // yields at +1 of the histosys of chosen templates that are not inputs
    uint fixed_down;  // yields at -1 of the same
    uint work_point;  // the point (P)
    uint work_trial;  // the trial point (P)
    uint work_step;  // the step (P)
    uint work_gradient;  // the gradient (P)
    uint work_constraint;  // curvature of the constraint terms (P)
    uint work_diagonal;  // diagonal of the Gauss-Newton matrix (P)
    uint work_scale;  // scale of the damping (P)
    uint work_bound_status;  // state of each parameter in the active set, a `BOUND_` number (P)
    uint work_displaced;  // the step of parameters at a bound, onto it (P)
    uint work_product;  // the Hessian times a step (P)
    uint work_rhs;  // right-hand side of the step (P)
    uint work_dots;  // products of a step with the rows of all channels
    uint work_scalar_value;  // values of the scalar modifiers
    uint work_scalar_derivative;  // their logarithmic derivatives
    uint work_scalar_curve;  // their relative curvatures
    uint work_weights;  // six histosys weights of each parameter that has any
    uint work_template_scale;  // product of the scalar factors of each template (T)
    uint work_template_sum;  // weighted yield of each template (T)
    uint work_histosys_derivative;  // weighted derivative of each histosys
    uint work_histosys_curve;  // weighted curvature of each histosys
    uint work_cell_yield;  // yield of each cell
    uint work_cell_scale;  // product of all factors of each cell
    uint work_first;  // derivative of each bin's Poisson term (B)
    uint work_second;  // curvature of each bin's Poisson term (B)
    uint work_row_weight;  // curvature of each bin's Poisson term at the point of the derivatives (B)
    uint work_jacobian;  // Jacobians of all channels
    uint work_pairs;  // pairs of rows of all channels
    uint work_column_diagonal;  // second derivatives of single modifiers, for each column
    uint work_local_derivative;  // derivatives of the local parameters (L)
    uint work_coupling;  // coupling rows of the local parameters
    uint work_eliminated;  // coupling rows times the inverse factor of their block
    uint work_blocks;  // blocks of local parameters
    uint work_block_factors;  // their Cholesky factors
    uint work_local_rhs;  // right-hand sides of the local parameters (L)
    uint work_matrix;  // matrix of the global parameters, with the right-hand side as its last row
    uint work_panel;  // transposed copy of a panel of the factor
};

// What a launch does with a batch of items.
STRUCT(Task) {
    uint n_items;  // number of items
    uint counts_step;  // from one item's event counts to the next one's, 0 if they share them
    uint aux_step;  // from one item's auxiliary data to the next one's, 0 if they share them
    uint fixed_step;  // from one item's fixed parameters to the next one's, 0 if they share them
    uint max_iterations;  // steps after which a fit gives up
    uint variance_param;  // parameter whose variance is requested, or none
    uint exact;  // whether the exact Hessian is used
    uint point_step;  // from one item's point to the next one's, 0 if they share it
    uint n_rows;  // sets of templates: item i uses set i modulo their number
    uint first_item;  // number of the first item
};

#define NONE 4294967295u // "none" in tables of indices
#define TILE 4u // rows of Jacobians are padded to a multiple of this, and products are computed in squares of it
#define PANEL 16u // rows and columns of a panel of the factor
#define NORMSYS_EXPONENTIAL 0u // code1
#define NORMSYS_SMOOTH 1u // code4
#define HISTOSYS_LINEAR 0u // code0
#define HISTOSYS_QUADRATIC 1u // code2
#define HISTOSYS_SMOOTH 2u // code4p
#define BOUND_FREE 0u // active set: a free parameter
#define BOUND_FIXED 1u // active set: a fixed parameter
#define BOUND_LOWER 2u // active set: a parameter at its lower bound
#define BOUND_UPPER 3u // active set: a parameter at its upper bound
#define BOUND_NEW_LOWER 4u // active set: a parameter whose step has just been cut at its lower bound
#define BOUND_NEW_UPPER 5u // active set: a parameter whose step has just been cut at its upper bound
#define SCALAR_ENTRY 0u // kind of an entry: normfactor, lumi or normsys
#define HISTOSYS_ENTRY 1u // kind of an entry: histosys
#define FACTOR_ENTRY 2u // kind of an entry: a per-bin factor
#define NOMINAL_INPUT 0u // kind of an input: a nominal yield
#define UP_INPUT 1u // kind of an input: a yield of a histosys at +1
#define DOWN_INPUT 2u // kind of an input: a yield of a histosys at -1
#define HI_FACTOR_INPUT 3u // kind of an input: the factor of a normsys at +1, which the one at -1 follows
#define LO_FACTOR_INPUT 4u // kind of an input: the factor of a normsys at -1
#define RESULT_NLL 0u // place in a fit's result: -ln L without constants
#define RESULT_EDM 1u // the estimated distance to the minimum (EDM) before the last step
#define RESULT_STATUS 2u // the status of the fit
#define RESULT_ITERATIONS 3u // steps taken or tried
#define RESULT_VARIANCE 4u // the requested variance
#define RESULT_SIZE 8u // numbers of a fit's result
#define CONVERGED 0u // status of a fit: in a minimum
#define ITERATION_LIMIT 1u // status of a fit: the iteration limit was reached
#define STALLED 2u // status of a fit: no step makes progress
#define SADDLE 3u // status of a fit: the Hessian is indefinite near a stationary point
#define NOT_FINITE 4u // status of a fit: -ln L is not finite at the start
