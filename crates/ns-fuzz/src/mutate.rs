//! Damages documents, the same way for the same seed: their bytes, and the numbers and words of
//! their JSON.
//!
//! A parser refuses most random bytes at once. So half of the mutations here replace a number, a
//! word or a value in a document that still parses, and reach the compiler and the fit.

use ns_testkit::random::Random;

/// Numbers that cause errors: limits, signs, subnormals, rounded and huge numbers.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "1",
    "-1",
    "0.0",
    "1e-300",
    "5e-324",
    "1e300",
    "1e308",
    "-1e308",
    "1e12",
    "1e16",
    "0.1",
    "1e-10",
    "-5",
    "10",
    "3.5",
    "-0.01",
    "9007199254740993",
    "18446744073709551616",
    "1E+2",
    "100",
    "0.5",
    "2",
];

/// Texts that are not valid instead of a number.
const NOT_NUMBERS: &[&str] = &[
    "1e309",
    "01",
    "1.",
    ".5",
    "-",
    "NaN",
    "Infinity",
    "-Infinity",
    "null",
    "true",
    "\"1\"",
    "[]",
    "[1]",
    "{}",
    "1, 2",
    "",
];

/// Words with a meaning in some place, and some without.
const WORDS: &[&str] = &[
    "normfactor",
    "normsys",
    "histosys",
    "shapesys",
    "shapefactor",
    "staterror",
    "mcstat",
    "normalize",
    "elements",
    "lumi",
    "mu",
    "alpha",
    "name",
    "type",
    "data",
    "hi",
    "lo",
    "hi_data",
    "lo_data",
    "modifiers",
    "samples",
    "channels",
    "observations",
    "measurements",
    "config",
    "poi",
    "parameters",
    "inits",
    "bounds",
    "fixed",
    "auxdata",
    "sigmas",
    "factors",
    "constraints",
    "per_bin",
    "beta",
    "interpolation",
    "scale",
    "kappa",
    "tau",
    "sigma",
    "gamma",
    "lognormal",
    "poisson",
    "flat",
    "combine_lnn",
    "Gauss",
    "Poisson",
    "mean",
    "product",
    "const",
    "constraint_name",
    "default_values",
    "version",
    "1.0.0",
    "add",
    "remove",
    "replace",
    "move",
    "copy",
    "test",
    "",
    "/",
    "~",
    "~1",
    "-",
    "/channels/0/samples/0",
    "/channels/0/samples/-",
    "md5",
    "sha256",
    "\\ud800",
    "\\u0000",
    "é",
];

/// Returns a damaged copy of one of `seeds`, with one to four mutations. The same `random` gives
/// the same bytes.
///
/// # Panics
/// If there are no seeds.
#[must_use]
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    let n_mutations = 1 + random.below(4) * random.below(2);
    for _ in 0..n_mutations {
        bytes = once(bytes, seeds, random);
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

fn once(mut bytes: Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    match random.below(24) {
        0 => {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            bytes
        }
        1 => {
            bytes.truncate(random.below(bytes.len()));
            bytes
        }
        2 => splice(&bytes, &seeds[random.below(seeds.len())], random),
        3 => exchange(&bytes, a_range(&bytes, random), b""),
        4 => {
            let range = a_range(&bytes, random);
            let twice = [&bytes[range.clone()], &bytes[range.clone()]].concat();
            exchange(&bytes, range, &twice)
        }
        5 => exchange_token(&bytes, &tokens(&bytes, is_number), NOT_NUMBERS, random),
        6..=11 => exchange_token(&bytes, &tokens(&bytes, is_number), NUMBERS, random),
        12 => exchange_token(&bytes, &tokens(&bytes, is_word), WORDS, random),
        13 => swap_tokens(&bytes, &tokens(&bytes, |_| true), random),
        14..=15 => swap_tokens(&bytes, &tokens(&bytes, is_number), random),
        _ => scale_number(&bytes, random),
    }
}

/// Returns the beginning of `a` and the end of `b`.
fn splice(a: &[u8], b: &[u8], random: &mut Random) -> Vec<u8> {
    let (from, to) = (random.below(a.len()), random.below(b.len()));
    [&a[..from], &b[to..]].concat()
}

/// Returns a random range of up to 64 bytes.
fn a_range(bytes: &[u8], random: &mut Random) -> std::ops::Range<usize> {
    let start = random.below(bytes.len());
    start..bytes.len().min(start + 1 + random.below(64))
}

fn exchange(bytes: &[u8], range: std::ops::Range<usize>, new: &[u8]) -> Vec<u8> {
    [&bytes[..range.start], new, &bytes[range.end..]].concat()
}

/// Returns the ranges of the insides of strings, and of other scalars, for whose first byte
/// `wanted` returns true.
fn tokens(bytes: &[u8], wanted: fn(u8) -> bool) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (range, next) = match bytes[at] {
            b'"' => {
                let end = at + 1 + bytes[at + 1..].iter().position(|&b| b == b'"').unwrap_or(bytes.len() - at - 1);
                (at + 1..end, end + 1)
            }
            b if is_number(b) => {
                let len =
                    bytes[at..].iter().position(|&b| !b"+-.eE0123456789".contains(&b)).unwrap_or(bytes.len() - at);
                (at..at + len, at + len)
            }
            _ => {
                at += 1;
                continue;
            }
        };
        if wanted(bytes[at]) {
            found.push(range);
        }
        at = next;
    }
    found
}

fn is_number(first: u8) -> bool {
    first == b'-' || first.is_ascii_digit()
}

fn is_word(first: u8) -> bool {
    first == b'"'
}

fn exchange_token(bytes: &[u8], tokens: &[std::ops::Range<usize>], with: &[&str], random: &mut Random) -> Vec<u8> {
    if tokens.is_empty() {
        return bytes.to_vec();
    }
    let token = tokens[random.below(tokens.len())].clone();
    exchange(bytes, token, with[random.below(with.len())].as_bytes())
}

fn swap_tokens(bytes: &[u8], tokens: &[std::ops::Range<usize>], random: &mut Random) -> Vec<u8> {
    if tokens.len() < 2 {
        return bytes.to_vec();
    }
    let (a, b) = (random.below(tokens.len()), random.below(tokens.len()));
    let (first, second) = (&tokens[a.min(b)], &tokens[a.max(b)]);
    if a == b {
        return bytes.to_vec();
    }
    let (head, between, tail) = (&bytes[..first.start], &bytes[first.end..second.start], &bytes[second.end..]);
    [head, &bytes[second.clone()], between, &bytes[first.clone()], tail].concat()
}

/// Multiplies one number by a power of ten, perhaps with its sign changed: for models that are
/// barely possible.
fn scale_number(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let tokens = tokens(bytes, is_number);
    if tokens.is_empty() {
        return bytes.to_vec();
    }
    let token = tokens[random.below(tokens.len())].clone();
    let value: f64 = std::str::from_utf8(&bytes[token.clone()]).ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let sign = if random.one_in(3) { -1.0 } else { 1.0 };
    let scaled = sign * value * 10_f64.powf(random.between(-8.0, 8.0));
    exchange(bytes, token, format!("{scaled:e}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_damage() {
        let seeds = vec![br#"{"a": [1, 2.5e3, "x"]}"#.to_vec(), b"[]".to_vec()];
        let run = |seed| {
            let mut random = Random::new(seed);
            (0..200).map(|_| mutate(&seeds, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn tokens_are_strings_and_numbers() {
        let bytes = br#"{"a": [-1.5e3, "x y"]}"#;
        let found: Vec<&[u8]> = tokens(bytes, |_| true).into_iter().map(|range| &bytes[range]).collect();
        assert_eq!(found, [&b"a"[..], b"-1.5e3", b"x y"]);
    }
}
