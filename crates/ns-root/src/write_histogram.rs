//! Lays out a histogram as the bytes of a `TH1D`, as [`crate::histogram`] reads it.

use crate::histogram::Histogram;
use crate::output::Output;

/// What `GetMaximum` and `GetMinimum` take for "not set".
const NOT_SET: f64 = -1111.0;

/// The bit of an object that ROOT removes from lists when it is deleted: all histograms have it.
const MUST_CLEAN_UP: u32 = 1 << 3;

/// Puts `histogram` as a `TH1D` of ROOT 6.
pub(crate) fn write_histogram(output: &mut Output, histogram: &Histogram) {
    output.object(3, |output| {
        output.object(8, |output| base(output, histogram));
        output.doubles(histogram.cells().iter().copied());
    });
}

/// Puts the members of `TH1`. How it is drawn is what ROOT has for new histograms.
fn base(output: &mut Output, histogram: &Histogram) {
    output.named(&histogram.name, &histogram.title, MUST_CLEAN_UP);
    output.object(2, |output| [602, 1, 1].into_iter().for_each(|number| output.i16(number)));
    output.object(2, |output| [0, 1001].into_iter().for_each(|number| output.i16(number)));
    output.object(2, |output| {
        output.i16(1);
        output.i16(1);
        output.f32(1.0);
    });
    output.i32(histogram.cells().len() as i32);
    let (low, high) = histogram.range();
    let edges = if histogram.is_equidistant() { &[][..] } else { histogram.edges() };
    axis(output, "xaxis", histogram.n_bins(), [low, high], edges);
    axis(output, "yaxis", 1, [0.0, 1.0], &[]);
    axis(output, "zaxis", 1, [0.0, 1.0], &[]);
    output.i16(0);
    output.i16(1000);
    let sums = Sums::of(histogram);
    let statistics = [sums.contents, sums.contents, sums.squares, sums.positions, sums.squared_positions];
    statistics.into_iter().for_each(|number| output.f64(number));
    [NOT_SET, NOT_SET, 0.0].into_iter().for_each(|number| output.f64(number));
    output.doubles([].into_iter());
    output.doubles(histogram.squared_weights().unwrap_or_default().iter().copied());
    // Options, functions and the buffer of entries.
    output.string("");
    output.empty_list();
    output.i32(0);
    output.u8(0);
    // Errors are those of sums of squares, and statistics follow the setting of the program.
    output.i32(0);
    output.i32(2);
}

fn axis(output: &mut Output, name: &str, n_bins: usize, [low, high]: [f64; 2], edges: &[f64]) {
    output.object(10, |output| {
        output.named(name, "", 0);
        output.object(4, |output| {
            output.i32(510);
            [1, 1, 42].into_iter().for_each(|number| output.i16(number));
            [0.005, 0.035, 0.03, 1.0, 0.035].into_iter().for_each(|number| output.f32(number));
            output.i16(1);
            output.i16(42);
        });
        output.i32(n_bins as i32);
        output.f64(low);
        output.f64(high);
        output.doubles(edges.iter().copied());
        // All bins are shown, and this is not a time axis.
        output.i32(0);
        output.i32(0);
        output.u16(0);
        output.u8(0);
        output.string("");
        // Labels of bins.
        output.u32(0);
        output.u32(0);
    });
}

/// Sums over the bins, of which ROOT computes mean and width.
struct Sums {
    contents: f64,
    squares: f64,
    positions: f64,
    squared_positions: f64,
}

impl Sums {
    fn of(histogram: &Histogram) -> Self {
        let mut sums = Self { contents: 0.0, squares: 0.0, positions: 0.0, squared_positions: 0.0 };
        for (bin, content) in histogram.values().iter().enumerate() {
            let centre = (histogram.edges()[bin] + histogram.edges()[bin + 1]) / 2.0;
            sums.contents += content;
            sums.squares += histogram.squared_weights().map_or(*content, |squares| squares[bin + 1]);
            sums.positions += content * centre;
            sums.squared_positions += content * centre * centre;
        }
        sums
    }
}
