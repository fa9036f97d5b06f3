// The fields of the structs that kernels are launched with, and the numbers that they share with
// the host. `layout.rs` includes this file with its own macros `constants!` and `numbers!`, the
// build script with those of ns-device-build.
//
// After a change here, `UPDATE_LAYOUT=1 cargo build -p ns-compute` writes `kernels/layout.h`; a
// build with an outdated header fails.

constants! {
    /// Sizes and rules of a model, the offsets of its tables, and those of a block's working memory
    /// (`work_`).
    Layout {
        /// P
        n_params,
        /// B
        n_bins,
        /// C
        n_channels,
        /// T
        n_templates,
        /// cells: bins of templates
        n_cells,
        /// scalar modifiers: normfactor, lumi, normsys
        n_scalars,
        /// parameters of histosys modifiers
        n_weights,
        /// histosys modifiers
        n_histosys,
        /// K
        n_terms,
        /// G
        n_global,
        /// L
        n_local,
        /// row length of the matrix of the global parameters
        matrix_stride,
        /// row length of a panel's transposed copy
        panel_stride,
        /// numbers that a block works with
        workspace,
        /// which interpolation normsys modifiers have
        normsys_rule,
        /// which interpolation histosys modifiers have
        histosys_rule,
        /// first bin of each channel (C + 1)
        channel_bin,
        /// first template of each channel (C + 1)
        channel_template,
        /// first column of each channel (C + 1)
        channel_column,
        /// row length of each channel's Jacobian (C)
        channel_stride,
        /// offset of each channel's Jacobian (C)
        channel_jacobian,
        /// offset of each channel's pairs of rows (C)
        channel_pairs,
        /// offset of each channel's products of rows (C)
        channel_dots,
        /// first per-bin factor of each channel that is shared with others (C + 1)
        channel_factor,
        /// its column, counted inside the channel
        factor_column,
        /// offset of each channel's slot masks (C)
        channel_mask,
        /// whether a template has the local factor of a slot: slots by templates, for each channel
        slot_mask,
        /// channel of each bin (B)
        bin_channel,
        /// first local parameter of each bin (B + 1)
        bin_local,
        /// offset of each bin's block of local parameters (B)
        bin_block,
        /// channel of each template (T)
        template_channel,
        /// first cell of each template (T)
        template_cell,
        /// first scalar modifier of each template (T + 1)
        template_scalar,
        /// first histosys of each template (T + 1)
        template_histosys,
        /// first per-bin modifier of each template (T + 1)
        template_factor,
        /// template of each cell
        cell_template,
        /// parameter of each scalar modifier
        scalar_param,
        /// its normsys, or none
        scalar_normsys,
        /// parameters of histosys modifiers
        weight_param,
        /// which of those parameters each histosys has
        histosys_weight,
        /// offset of each histosys in the template differences
        histosys_cell,
        /// template of each histosys
        histosys_template,
        /// parameter of the channel's first bin, for each per-bin modifier
        factor_param,
        /// parameter of each constraint term (K)
        term_param,
        /// 1 for a Poisson term (K)
        term_is_poisson,
        /// constraint term of each parameter, or none (P)
        param_term,
        /// parameter of each global position (G)
        global_param,
        /// parameter of each local position (L)
        local_param,
        /// bin of each local position (L)
        local_bin,
        /// offset of each local position's coupling row (L)
        local_coupling,
        /// first of the templates that have each local parameter (L + 1)
        local_entry,
        /// those templates
        local_template,
        /// global position of each column
        column_position,
        /// first entry of each column, and the end
        column_entry,
        /// kind of each entry: scalar, histosys or per-bin factor
        entry_kind,
        /// which modifier of that kind it is
        entry_use,
        /// template of each entry
        entry_template,
        /// bin of a per-bin factor, counted inside the channel
        entry_bin,
        /// first column of each global position (G + 1)
        position_column,
        /// channel of those columns
        use_channel,
        /// column inside that channel
        use_column,
        /// ln hi, ln lo and six coefficients of each normsys
        normsys,
        /// nominal yields of all cells
        nominal,
        /// template differences hi - nominal
        up,
        /// template differences lo - nominal
        down,
        /// width of a Gaussian, rate of a Poisson term (K)
        term_scale,
        /// M, the inputs of a model whose templates are replaced; 0 without
        n_inputs,
        /// numbers that every set of templates has its own copy of
        n_row_reals,
        /// kind of each input (M)
        input_kind,
        /// template of each input (M)
        input_template,
        /// its cell, or of a factor its normsys (M)
        input_place,
        /// its histosys, or of a factor its scalar modifier; unused for nominal yields (M)
        input_use,
        /// first input of the yields at +1 of each histosys, or none
        histosys_hi,
        /// first input of the yields at -1 of each histosys, or none
        histosys_lo,
        /// yields at +1 of the histosys of chosen templates that are not inputs
        fixed_up,
        /// yields at -1 of the same
        fixed_down,
        /// the point (P)
        work_point,
        /// the trial point (P)
        work_trial,
        /// the step (P)
        work_step,
        /// the gradient (P)
        work_gradient,
        /// curvature of the constraint terms (P)
        work_constraint,
        /// diagonal of the Gauss-Newton matrix (P)
        work_diagonal,
        /// scale of the damping (P)
        work_scale,
        /// state of each parameter in the active set, a `BOUND_` number (P)
        work_bound_status,
        /// the step of parameters at a bound, onto it (P)
        work_displaced,
        /// the Hessian times a step (P)
        work_product,
        /// right-hand side of the step (P)
        work_rhs,
        /// products of a step with the rows of all channels
        work_dots,
        /// values of the scalar modifiers
        work_scalar_value,
        /// their logarithmic derivatives
        work_scalar_derivative,
        /// their relative curvatures
        work_scalar_curve,
        /// six histosys weights of each parameter that has any
        work_weights,
        /// product of the scalar factors of each template (T)
        work_template_scale,
        /// weighted yield of each template (T)
        work_template_sum,
        /// weighted derivative of each histosys
        work_histosys_derivative,
        /// weighted curvature of each histosys
        work_histosys_curve,
        /// yield of each cell
        work_cell_yield,
        /// product of all factors of each cell
        work_cell_scale,
        /// derivative of each bin's Poisson term (B)
        work_first,
        /// curvature of each bin's Poisson term (B)
        work_second,
        /// curvature of each bin's Poisson term at the point of the derivatives (B)
        work_row_weight,
        /// Jacobians of all channels
        work_jacobian,
        /// pairs of rows of all channels
        work_pairs,
        /// second derivatives of single modifiers, for each column
        work_column_diagonal,
        /// derivatives of the local parameters (L)
        work_local_derivative,
        /// coupling rows of the local parameters
        work_coupling,
        /// coupling rows times the inverse factor of their block
        work_eliminated,
        /// blocks of local parameters
        work_blocks,
        /// their Cholesky factors
        work_block_factors,
        /// right-hand sides of the local parameters (L)
        work_local_rhs,
        /// matrix of the global parameters, with the right-hand side as its last row
        work_matrix,
        /// transposed copy of a panel of the factor
        work_panel,
    }
}

constants! {
    /// What a launch does with a batch of items.
    Task {
        /// number of items
        n_items,
        /// from one item's event counts to the next one's, 0 if they share them
        counts_step,
        /// from one item's auxiliary data to the next one's, 0 if they share them
        aux_step,
        /// from one item's fixed parameters to the next one's, 0 if they share them
        fixed_step,
        /// steps after which a fit gives up
        max_iterations,
        /// parameter whose variance is requested, or none
        variance_param,
        /// whether the exact Hessian is used
        exact,
        /// from one item's point to the next one's, 0 if they share it
        point_step,
        /// sets of templates: item i uses set i modulo their number
        n_rows,
        /// number of the first item
        first_item,
    }
}

numbers! {
    /// "none" in tables of indices
    NONE = u32::MAX,
    /// rows of Jacobians are padded to a multiple of this, and products are computed in squares of
    /// it
    TILE = 4,
    /// rows and columns of a panel of the factor
    PANEL = 16,
    /// code1
    NORMSYS_EXPONENTIAL = 0,
    /// code4
    NORMSYS_SMOOTH = 1,
    /// code0
    HISTOSYS_LINEAR = 0,
    /// code2
    HISTOSYS_QUADRATIC = 1,
    /// code4p
    HISTOSYS_SMOOTH = 2,
    /// active set: a free parameter
    BOUND_FREE = 0,
    /// active set: a fixed parameter
    BOUND_FIXED = 1,
    /// active set: a parameter at its lower bound
    BOUND_LOWER = 2,
    /// active set: a parameter at its upper bound
    BOUND_UPPER = 3,
    /// active set: a parameter whose step has just been cut at its lower bound
    BOUND_NEW_LOWER = 4,
    /// active set: a parameter whose step has just been cut at its upper bound
    BOUND_NEW_UPPER = 5,
    /// kind of an entry: normfactor, lumi or normsys
    SCALAR_ENTRY = 0,
    /// kind of an entry: histosys
    HISTOSYS_ENTRY = 1,
    /// kind of an entry: a per-bin factor
    FACTOR_ENTRY = 2,
    /// kind of an input: a nominal yield
    NOMINAL_INPUT = 0,
    /// kind of an input: a yield of a histosys at +1
    UP_INPUT = 1,
    /// kind of an input: a yield of a histosys at -1
    DOWN_INPUT = 2,
    /// kind of an input: the factor of a normsys at +1, which the one at -1 follows
    HI_FACTOR_INPUT = 3,
    /// kind of an input: the factor of a normsys at -1
    LO_FACTOR_INPUT = 4,
    /// place in a fit's result: -ln L without constants
    RESULT_NLL = 0,
    /// the estimated distance to the minimum (EDM) before the last step
    RESULT_EDM = 1,
    /// the status of the fit
    RESULT_STATUS = 2,
    /// steps taken or tried
    RESULT_ITERATIONS = 3,
    /// the requested variance
    RESULT_VARIANCE = 4,
    /// numbers of a fit's result
    RESULT_SIZE = 8,
    /// status of a fit: in a minimum
    CONVERGED = 0,
    /// status of a fit: the iteration limit was reached
    ITERATION_LIMIT = 1,
    /// status of a fit: no step makes progress
    STALLED = 2,
    /// status of a fit: the Hessian is indefinite near a stationary point
    SADDLE = 3,
    /// status of a fit: -ln L is not finite at the start
    NOT_FINITE = 4,
}
