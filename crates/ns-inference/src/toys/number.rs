//! Validates the number of toys.

/// The largest number of toys: their indices have 48 bits.
pub const MOST_TOYS: u64 = 1 << 48;

/// A value that is not a valid number of toys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is not a whole number from 1 to {}", MOST_TOYS)]
pub struct InvalidToyCount {
    given: String,
}

/// Returns `number` if it is a valid number of toys. `given` is what the user wrote.
///
/// # Errors
/// If `number` is not from 1 to [`MOST_TOYS`], or is `None` because `given` is not a whole number.
///
/// ```
/// use ns_inference::toys::number_of_toys;
/// assert_eq!(number_of_toys(Some(1000), "1e3"), Ok(1000));
/// let error = number_of_toys(Some(0), "0").unwrap_err();
/// assert_eq!(error.to_string(), "`0` is not a whole number from 1 to 281474976710656");
/// ```
pub fn number_of_toys(number: Option<u64>, given: &str) -> Result<u64, InvalidToyCount> {
    number.filter(|n| (1..=MOST_TOYS).contains(n)).ok_or_else(|| InvalidToyCount { given: given.to_owned() })
}
