//! How a command ended, and its exit code.

/// How a command ended that produced a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// Done: exit code 0.
    Done,
    /// Done, with a result that is not to be used as it is: exit code 1.
    Failed,
    /// Interrupted by Ctrl-C, with partial results: exit code 130.
    Interrupted,
    /// As the program ended that the verb was passed on to, with its exit code.
    Passed(u8),
}

impl Status {
    /// Returns [`Status::Done`] if `is_good`, [`Status::Failed`] if not.
    pub(crate) fn done_if(is_good: bool) -> Self {
        if is_good { Self::Done } else { Self::Failed }
    }

    /// Returns the exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Interrupted => 130,
            Self::Passed(code) => code,
        }
    }
}
