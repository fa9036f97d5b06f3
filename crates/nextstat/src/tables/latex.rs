//! Tables in LaTeX: complete `table` environments for the packages booktabs, siunitx and graphicx.
//!
//! A table that is wider than the line is scaled to it, which LaTeX decides when it has set it.
//! Numbers are in `\num`, each value and uncertainty in its own, which both versions of siunitx
//! take. Names are escaped for any engine; Greek letters are set in math mode.

use super::rounding::{Rounded, rounded};
use super::{Cell, Column, ColumnKind, Table, on_one_line};

/// A cell without a number.
const DASH: &str = "---";

/// The width of a table: its own, or that of the line if it is wider.
const WIDTH: &str = "\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi";

/// Returns the table with its notes as comments.
pub(super) fn text(table: &Table) -> String {
    let mut text = "% needs \\usepackage{booktabs,graphicx,siunitx}\n".to_owned();
    table.notes.iter().for_each(|note| text += &format!("% {}\n", on_one_line(note)));
    let caption = if table.has_given_caption { table.caption.clone() } else { escape(&table.caption) };
    let alignment: String = table.columns.iter().map(alignment).collect();
    let headings: Vec<String> = table.columns.iter().map(|column| escape(&column.heading)).collect();
    text += "\\begin{table}\n  \\centering\n";
    text += &format!("  \\caption{{{caption}}}\n  \\label{{{}}}\n", label(&table.label));
    text += &format!("  \\resizebox{{{WIDTH}}}{{!}}{{%\n");
    text += &format!("  \\begin{{tabular}}{{{alignment}}}\n    \\toprule\n");
    text += &format!("    {} \\\\\n    \\midrule\n", headings.join(" & "));
    for row in &table.rows {
        let cells = row.cells.iter().zip(&table.columns).map(|(cell, column)| shown(cell, column.kind));
        let rule = if row.has_rule { "    \\midrule\n" } else { "" };
        text += &format!("{rule}    {} \\\\\n", cells.collect::<Vec<_>>().join(" & "));
    }
    text + "    \\bottomrule\n  \\end{tabular}}\n\\end{table}\n"
}

fn alignment(column: &Column) -> char {
    if column.kind == ColumnKind::Text { 'l' } else { 'r' }
}

/// Keeps the characters that a label may have.
fn label(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || ":-_.+".contains(*c)).collect()
}

fn shown(cell: &Cell, kind: ColumnKind) -> String {
    match cell {
        Cell::Empty => DASH.to_owned(),
        Cell::Text(name) => escape(name),
        Cell::Number(number) => num(&kind.shown(*number)),
        Cell::Measured { value, uncertainty: None } => num(&kind.shown(*value)),
        Cell::Measured { value, uncertainty: Some(uncertainty) } => {
            let Rounded { value, uncertainties, exponent } = rounded(*value, &[*uncertainty]);
            math(&format!("{} \\pm {}", num(&value), num(&uncertainties[0])), exponent)
        }
        Cell::Interval { value, down, up } => {
            let ends = [*down, *up].map(|end| end.map_or(0.0, f64::abs));
            let Rounded { value, uncertainties, exponent } = rounded(*value, &ends);
            let end =
                |k: usize, is_known: bool| if is_known { num(&uncertainties[k]) } else { "\\mbox{--}".to_owned() };
            let [down, up] = [end(0, down.is_some()), end(1, up.is_some())];
            math(&format!("{}^{{+{up}}}_{{-{down}}}", num(&value)), exponent)
        }
    }
}

fn num(number: &str) -> String {
    format!("\\num{{{number}}}")
}

fn math(text: &str, exponent: i32) -> String {
    if exponent == 0 { format!("${text}$") } else { format!("$({text}) \\times 10^{{{exponent}}}$") }
}

/// Escapes a name.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut last = ' ';
    for c in on_one_line(text).chars() {
        match c {
            '\\' => escaped += "\\textbackslash{}",
            '^' => escaped += "\\textasciicircum{}",
            '~' => escaped += "\\textasciitilde{}",
            '<' => escaped += "\\textless{}",
            '>' => escaped += "\\textgreater{}",
            '|' => escaped += "\\textbar{}",
            '"' => escaped += "{\\char34}",
            '`' => escaped += "{\\char96}",
            '_' | '%' | '&' | '#' | '$' | '{' | '}' => escaped.extend(['\\', c]),
            // Arguments of the line end and of rules before them.
            '[' | ']' | '*' => escaped.extend(['{', c, '}']),
            // Ligatures.
            '-' | ',' | '\'' if last == c => escaped.extend(['{', c, '}']),
            _ if c.is_ascii() => escaped.push(c),
            _ => escaped += &symbol(c),
        }
        last = c;
    }
    escaped
}

/// Returns a character outside ASCII: in math mode, as it is if every engine has it, or by its
/// number.
fn symbol(c: char) -> String {
    if let Some((_, command)) = SYMBOLS.iter().find(|(symbol, _)| *symbol == c) {
        return format!("${command}$");
    }
    match c {
        '\u{a0}' => "~".to_owned(),
        '–' => "--".to_owned(),
        '—' => "---".to_owned(),
        '‘' | '’' => "'".to_owned(),
        // Latin letters with accents that the default input encoding of LaTeX knows.
        'À'..='Ö' | 'Ø'..='ö' | 'ø'..='ÿ' if !matches!(c, 'Ð' | 'ð' | 'Þ' | 'þ') => c.to_string(),
        _ => format!("\\texttt{{U+{:04X}}}", c as u32),
    }
}

/// Characters with commands of math mode.
#[rustfmt::skip]
const SYMBOLS: &[(char, &str)] = &[
    ('α', "\\alpha"), ('β', "\\beta"), ('γ', "\\gamma"), ('δ', "\\delta"), ('ε', "\\varepsilon"),
    ('ϵ', "\\epsilon"), ('ζ', "\\zeta"), ('η', "\\eta"), ('θ', "\\theta"), ('ϑ', "\\vartheta"),
    ('ι', "\\iota"), ('κ', "\\kappa"), ('λ', "\\lambda"), ('μ', "\\mu"), ('µ', "\\mu"), ('ν', "\\nu"),
    ('ξ', "\\xi"), ('ο', "o"), ('π', "\\pi"), ('ρ', "\\rho"), ('σ', "\\sigma"), ('ς', "\\varsigma"),
    ('τ', "\\tau"), ('υ', "\\upsilon"), ('φ', "\\varphi"), ('ϕ', "\\phi"), ('χ', "\\chi"), ('ψ', "\\psi"),
    ('ω', "\\omega"), ('Α', "\\mathrm{A}"), ('Β', "\\mathrm{B}"), ('Γ', "\\Gamma"), ('Δ', "\\Delta"),
    ('Ε', "\\mathrm{E}"), ('Ζ', "\\mathrm{Z}"), ('Η', "\\mathrm{H}"), ('Θ', "\\Theta"),
    ('Ι', "\\mathrm{I}"), ('Κ', "\\mathrm{K}"), ('Λ', "\\Lambda"), ('Μ', "\\mathrm{M}"),
    ('Ν', "\\mathrm{N}"), ('Ξ', "\\Xi"), ('Ο', "\\mathrm{O}"), ('Π', "\\Pi"), ('Ρ', "\\mathrm{P}"),
    ('Σ', "\\Sigma"), ('Τ', "\\mathrm{T}"), ('Υ', "\\Upsilon"), ('Φ', "\\Phi"), ('Χ', "\\mathrm{X}"),
    ('Ψ', "\\Psi"), ('Ω', "\\Omega"), ('±', "\\pm"), ('−', "-"), ('×', "\\times"), ('·', "\\cdot"),
    ('→', "\\rightarrow"), ('←', "\\leftarrow"), ('↑', "\\uparrow"), ('↓', "\\downarrow"),
    ('≤', "\\leq"), ('≥', "\\geq"), ('≈', "\\approx"), ('≠', "\\neq"), ('∞', "\\infty"), ('√', "\\surd"),
    ('²', "{}^2"), ('³', "{}^3"), ('¹', "{}^1"), ('⁺', "{}^+"), ('⁻', "{}^-"), ('₀', "{}_0"),
    ('₁', "{}_1"), ('₂', "{}_2"), ('ℓ', "\\ell"), ('°', "{}^\\circ"), ('…', "\\ldots"), ('′', "{}'"),
];

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn every_special_character_is_escaped() {
        let cases = [
            (r"a_b%c&d#e$f", r"a\_b\%c\&d\#e\$f"),
            (r"\input{x}", r"\textbackslash{}input\{x\}"),
            ("x^2~y", r"x\textasciicircum{}2\textasciitilde{}y"),
            ("[2pt] --- *", r"{[}2pt{]} -{-}{-} {*}"),
            ("μ → ττ̄", r"$\mu$ $\rightarrow$ $\tau$$\tau$\texttt{U+0304}"),
            ("first\nsecond\u{202e}", "first second"),
            ("Größe", "Größe"),
        ];
        for (name, wanted) in cases {
            assert_eq!(escape(name), wanted);
        }
    }
}
