//! Rankings of nuisance parameters by their impact on the parameter of interest.

use crate::answer::Document;
use crate::document::identify;
use crate::error::{Procedure, SettingsError};
use crate::{Analysis, Answer, Error};
use ns_inference::monitor::Monitor;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::ranking::{self, ParameterGroup, Ranking, RankingMethods, RankingOptions, RankingPart};
use serde_json::{Value, json};

/// How to rank.
///
/// ```
/// use nextstat::ranking::RankingRequest;
/// use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
///
/// # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
/// # let model = CompiledModel::from_json(&workspace, &Default::default())?;
/// let analysis = Analysis::new(&model, &Settings::default())?;
/// let ranking = analysis.ranking(&RankingRequest::default(), &NoMonitor)?;
/// assert_eq!(ranking.result.poi.name, "mu");
/// assert!(ranking.result.entries.len() > 1);
/// # Ok::<(), nextstat::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RankingRequest {
    /// How impacts are computed.
    pub methods: RankingMethods,
    /// Whether shifts are MINOS intervals instead of standard deviations.
    pub minos: bool,
    /// Groups of parameters: a name, and patterns in which `*` stands for anything.
    pub groups: Vec<(String, Vec<String>)>,
    /// Parts that were computed elsewhere.
    pub parts: Vec<RankingPart>,
}

impl Default for RankingRequest {
    fn default() -> Self {
        Self { methods: RankingMethods::ALL, minos: false, groups: Vec::new(), parts: Vec::new() }
    }
}

impl Analysis {
    /// Ranks the nuisance parameters.
    ///
    /// # Errors
    /// No parameter of interest, or a fixed one; groups without members or with one name; a device
    /// without classic refits; too little memory.
    pub fn ranking(&self, request: &RankingRequest, monitor: &dyn Monitor) -> Result<Answer<Ranking>, Error> {
        let options = self.ranking_options(request)?;
        if !request.methods.classic {
            self.require_cpu("a ranking without classic refits")?;
        }
        let execution = self.execution(monitor)?;
        let mut likelihood = self.likelihood()?;
        let problem = self.problem(&mut likelihood);
        let mut result = ranking::ranking_of_parts(&problem, &options, &request.parts, execution);
        if !result.best.nll.is_finite() {
            result.warnings.extend(self.impossible_at(&result.best.params));
        }
        self.answer(result)
    }

    /// Computes part `part` of a ranking, for [`RankingRequest::parts`].
    ///
    /// # Errors
    /// As [`Analysis::ranking`]; a device, which this does not use.
    pub fn ranking_part(
        &self,
        request: &RankingRequest,
        part: WorkPart,
        monitor: &dyn Monitor,
    ) -> Result<RankingPart, Error> {
        self.require_cpu("a part of a ranking")?;
        let (options, execution) = (self.ranking_options(request)?, ExecutionContext::new(self.threads(), monitor));
        let mut likelihood = self.likelihood()?;
        Ok(ranking::ranking_part(&self.problem(&mut likelihood), &options, part, execution))
    }

    fn ranking_options(&self, request: &RankingRequest) -> Result<RankingOptions, SettingsError> {
        let poi = self.varied(None, Procedure::Ranking)?;
        let mut groups: Vec<ParameterGroup> = Vec::with_capacity(request.groups.len());
        for (name, patterns) in &request.groups {
            if groups.iter().any(|known| known.name == *name) {
                return Err(SettingsError::TwoGroups { name: name.clone() });
            }
            let group = ParameterGroup::matching(name, patterns, &self.model().parameters);
            if group.members.iter().all(|&i| i == poi || self.is_fixed(i)) {
                return Err(SettingsError::EmptyGroup { name: name.clone() });
            }
            groups.push(group);
        }
        let (methods, minos) = (request.methods, request.minos);
        Ok(RankingOptions { poi, methods, minos, groups })
    }
}

impl Document for Ranking {
    fn fields(answer: &Answer<Self>) -> Value {
        let ranking = &answer.result;
        let mut document = json!({
            "best": ranking.best,
            "breakdown": ranking.breakdown,
            "complete": ranking.is_complete,
            "converged": ranking.converged,
            "groups": ranking.groups,
            "par_names": answer.model().parameters.names,
            "poi": ranking.poi,
            "ranking": ranking.entries,
            "warnings": ranking.warnings,
        });
        identify(&mut document, answer.model());
        document
    }
}
