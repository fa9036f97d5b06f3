//! Names that differ, made of wanted ones by numbers.

use std::collections::{HashMap, HashSet};

/// Names that are taken.
#[derive(Default)]
pub(super) struct FreeNames {
    taken: HashSet<String>,
    /// The first number to try for a name that was wanted before: counting from 1 each time would
    /// take a time that grows with the square of how many want it.
    next: HashMap<String, usize>,
}

impl FreeNames {
    /// Takes the first free one of `wanted`, `wanted_2`, `wanted_3` and so on. Returns its number.
    pub(super) fn take(&mut self, wanted: &str) -> usize {
        let next = self.next.entry(wanted.to_owned()).or_insert(1);
        while !self.taken.insert(numbered(wanted, *next)) {
            *next += 1;
        }
        let number = *next;
        *next += 1;
        number
    }
}

/// Returns the name of a number.
pub(super) fn numbered(wanted: &str, number: usize) -> String {
    if number == 1 { wanted.to_owned() } else { format!("{wanted}_{number}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_first_free_ones() {
        let mut free = FreeNames::default();
        let names = ["a", "a", "a_2", "a", "a_2", "a"].map(|wanted| numbered(wanted, free.take(wanted)));
        assert_eq!(names, ["a", "a_2", "a_2_2", "a_3", "a_2_3", "a_4"]);
    }

    #[test]
    fn one_name_is_wanted_any_number_of_times() {
        // Counting from 1 each time, that would be 5,000,000,000 names.
        let mut free = FreeNames::default();
        assert!((1..=100_000).all(|number| free.take("a") == number));
    }
}
