//! A small log-log plot as SVG: axes in powers of ten, one line per series, names at the side.

use std::fmt::Write as _;

/// A named line.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Lines over two logarithmic axes.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) series: Vec<Series>,
}

/// Width of the area inside the axes.
const WIDTH: f64 = 520.0;
/// Height of the area inside the axes.
const HEIGHT: f64 = 380.0;
/// Space left of the axes.
const LEFT: f64 = 70.0;
/// Space above the axes.
const TOP: f64 = 20.0;
const COLOURS: [&str; 6] = ["#1b6ca8", "#8fc1e3", "#b5432a", "#eba894", "#2f7d4f", "#9fd3b4"];

/// Powers of ten that a logarithmic axis spans.
#[derive(Debug, Clone, Copy)]
struct Decades {
    first: i32,
    last: i32,
}

impl Decades {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let low = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let high = values.fold(f64::NEG_INFINITY, f64::max).log10().ceil();
        Self { first: low as i32, last: (high as i32).max(low as i32 + 1) }
    }

    /// Where `value` is between the ends of the axis: 0 to 1.
    fn place(self, value: f64) -> f64 {
        (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first)
    }
}

/// Both axes of a plot.
#[derive(Debug, Clone, Copy)]
struct Axes {
    x: Decades,
    y: Decades,
}

impl Plot {
    /// The plot as a document.
    pub(crate) fn to_svg(&self) -> String {
        let points = self.series.iter().flat_map(|series| series.points.iter().copied());
        let axes = Axes { x: Decades::of(points.clone().map(|p| p.0)), y: Decades::of(points.map(|p| p.1)) };
        let mut svg = String::from(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 450" font-family="sans-serif" font-size="12"><rect width="960" height="450" fill="#fff"/>"##,
        );
        self.draw_axes(axes, &mut svg);
        for (i, series) in self.series.iter().enumerate() {
            draw_series(series, i, axes, &mut svg);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_axes(&self, Axes { x, y }: Axes, svg: &mut String) {
        for decade in x.first..=x.last {
            let at = LEFT + WIDTH * x.place(10_f64.powi(decade));
            let (bottom, label) = (TOP + HEIGHT, TOP + HEIGHT + 18.0);
            add(svg, format_args!(r##"<path d="M{at:.1} {TOP}V{bottom}" stroke="#ddd"/>"##));
            add(svg, format_args!(r#"<text x="{at:.1}" y="{label}" text-anchor="middle">{}</text>"#, power(decade)));
        }
        for decade in y.first..=y.last {
            let at = TOP + HEIGHT * (1.0 - y.place(10_f64.powi(decade)));
            let (right, label, baseline) = (LEFT + WIDTH, LEFT - 8.0, at + 4.0);
            add(svg, format_args!(r##"<path d="M{LEFT} {at:.1}H{right}" stroke="#ddd"/>"##));
            add(svg, format_args!(r#"<text x="{label}" y="{baseline:.1}" text-anchor="end">{}</text>"#, power(decade)));
        }
        let (middle, bottom) = (LEFT + WIDTH / 2.0, TOP + HEIGHT + 38.0);
        add(svg, format_args!(r#"<text x="{middle}" y="{bottom}" text-anchor="middle">{}</text>"#, self.x));
        add(svg, format_args!(r#"<text x="14" y="{}">{}</text>"#, TOP + HEIGHT / 2.0, self.y));
    }
}

fn draw_series(series: &Series, i: usize, Axes { x, y }: Axes, svg: &mut String) {
    let colour = COLOURS[i % COLOURS.len()];
    let mut line = String::new();
    for &(a, b) in &series.points {
        let (at, up) = (LEFT + WIDTH * x.place(a), TOP + HEIGHT * (1.0 - y.place(b)));
        add(&mut line, format_args!("{at:.1},{up:.1} "));
        add(svg, format_args!(r#"<circle cx="{at:.1}" cy="{up:.1}" r="3" fill="{colour}"/>"#));
    }
    add(
        svg,
        format_args!(r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, line.trim_end()),
    );
    let (left, row) = (LEFT + WIDTH + 16.0, TOP + 14.0 + 22.0 * i as f64);
    add(svg, format_args!(r#"<rect x="{left}" y="{}" width="12" height="12" fill="{colour}"/>"#, row - 10.0));
    add(svg, format_args!(r#"<text x="{}" y="{row}">{}</text>"#, left + 18.0, series.name));
}

fn power(decade: i32) -> String {
    match decade {
        0..=5 => 10_i32.pow(decade.unsigned_abs()).to_string(),
        _ => format!("1e{decade}"),
    }
}

/// Writing to a `String` cannot fail.
fn add(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("memory takes whatever is written");
}
