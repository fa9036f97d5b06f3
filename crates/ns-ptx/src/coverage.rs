//! Counts which basic blocks were executed.

use crate::parse::Module;

/// The instructions that were executed so far, by function.
#[derive(Debug, Clone)]
pub struct Coverage(Vec<Vec<bool>>);

/// How many basic blocks of a function were executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCount {
    /// The function.
    pub function: String,
    /// Blocks that were executed.
    pub n_executed: usize,
    /// All blocks.
    pub n_blocks: usize,
}

impl Coverage {
    /// Returns the coverage of a module of which nothing was executed.
    #[must_use]
    pub fn new(module: &Module) -> Self {
        Self(module.functions.iter().map(|function| vec![false; function.instructions.len()]).collect())
    }

    pub(crate) fn visit(&mut self, function: usize, instruction: usize) {
        self.0[function][instruction] = true;
    }

    /// Returns the basic blocks of each function of `module`, whose coverage this is.
    #[must_use]
    pub fn blocks(&self, module: &Module) -> Vec<BlockCount> {
        let count = |(function, visited): (&crate::parse::Function, &Vec<bool>)| BlockCount {
            function: function.name.clone(),
            n_executed: function.leaders.iter().filter(|&&leader| visited[leader as usize]).count(),
            n_blocks: function.leaders.len(),
        };
        module.functions.iter().zip(&self.0).map(count).collect()
    }
}
