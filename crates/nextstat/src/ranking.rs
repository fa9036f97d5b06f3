//! Rankings of nuisance parameters by their impact on the parameter of interest.

use crate::answer::Document;
use crate::error::{NotThisMinimum, Procedure, SettingsError};
use crate::sample_groups::GroupTwice;
use crate::stored::StoredFit;
use crate::stored_point::{SAME_VALUE, StoredPoint};
use crate::{Analysis, Answer, Error};
use ns_core::Likelihood;
use ns_core::parameters::ParameterSet;
use ns_core::spec::Measurement;
use ns_inference::hessian::Hessian;
use ns_inference::monitor::Monitor;
use ns_inference::options::domain_and_start;
use ns_inference::parallel::{ExecutionContext, WorkPart};
use ns_inference::ranking::{self, EarlierFit, ParameterGroup, Ranking, RankingMethods, RankingOptions, RankingPart};
use serde_json::{Value, json};
use std::sync::Arc;

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
    /// Groups of parameters.
    pub groups: RankingGroups,
    /// Parts that were computed elsewhere.
    pub parts: Vec<RankingPart>,
    /// A stored fit to refer to, instead of a new one. Its covariance ranks without a refit; for
    /// the other methods it must be a minimum of this likelihood.
    pub fit: Option<Arc<StoredFit>>,
}

/// Which groups of parameters have a common impact.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RankingGroups {
    /// All of the measurement, which data cards of Combine define; without free members none.
    #[default]
    OfMeasurement,
    /// The given groups.
    These(Vec<RankingGroup>),
}

/// A group of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RankingGroup {
    /// The group of the measurement that has this name.
    Named(String),
    /// The parameters that match.
    Matching {
        /// What the group is called.
        name: String,
        /// Names, or patterns in which `*` stands for anything.
        patterns: Vec<String>,
    },
}

impl RankingGroup {
    fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Matching { name, .. } => name,
        }
    }
}

impl Default for RankingRequest {
    fn default() -> Self {
        Self {
            methods: RankingMethods::ALL,
            minos: false,
            groups: RankingGroups::default(),
            parts: Vec::new(),
            fit: None,
        }
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
        if let Some(fit) = &request.fit {
            let point = self.stored_point(fit)?;
            if !request.methods.classic && !request.methods.global {
                return self.referring_to(fit).answer(self.ranking_of_point(&point, &options));
            }
            let unstored = RankingRequest { fit: None, ..request.clone() };
            return self.at_minimum(&point)?.referring_to(fit).ranking(&unstored, monitor);
        }
        let execution = self.execution(monitor)?;
        let mut likelihood = self.likelihood()?;
        let problem = self.problem(&mut likelihood);
        let mut result = ranking::ranking_of_parts(&problem, &options, &request.parts, execution);
        if !result.best.nll.is_finite() {
            result.warnings.extend(self.impossible_at(&result.best.params));
        }
        result.warnings.extend(self.first_of_several());
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
        if let Some(fit) = &request.fit {
            let unstored = RankingRequest { fit: None, ..request.clone() };
            return self.at_minimum(&self.stored_point(fit)?)?.ranking_part(&unstored, part, monitor);
        }
        let (options, execution) = (self.ranking_options(request)?, ExecutionContext::new(self.threads(), monitor));
        let mut likelihood = self.likelihood()?;
        Ok(ranking::ranking_part(&self.problem(&mut likelihood), &options, part, execution))
    }

    /// Ranks by the covariance of a stored fit.
    fn ranking_of_point(&self, point: &StoredPoint, options: &RankingOptions) -> Ranking {
        let StoredPoint { params, uncertainties, covariance, .. } = point;
        let fit = EarlierFit { params, uncertainties, covariance };
        let mut found = ranking::ranking_of_covariance(self.whole_model(), self.shown_data(), fit, options);
        found.warnings.extend(point.warnings.iter().cloned());
        found.warnings.extend(self.first_of_several());
        found
    }

    /// Returns the same analysis with fits that start at `point`.
    ///
    /// # Errors
    /// A point that is not a minimum of this likelihood, or not with these uncertainties: refits
    /// would differ from it by more than what they change.
    fn at_minimum(&self, point: &StoredPoint) -> Result<Self, Error> {
        let refused = |reason: NotThisMinimum| Error::from(SettingsError::NotThisMinimum(reason));
        if let Some(name) = point.unmatched.first() {
            return Err(refused(NotThisMinimum::Unmatched { name: name.clone() }));
        }
        let (domain, start) = domain_and_start(self.model(), self.options());
        let names = &self.model().parameters.names;
        for i in (0..names.len()).filter(|&i| domain.fixed[i]) {
            let (name, stored, here) = (names[i].clone(), point.params[i], start[i]);
            if (stored - here).abs() > SAME_VALUE * (1.0 + here.abs()) {
                return Err(refused(NotThisMinimum::Fixed { name, stored, here }));
            }
        }
        let mut likelihood = self.likelihood()?;
        let mut gradient = vec![0.0; point.params.len()];
        let nll = likelihood.nll_and_grad(&point.params, &mut gradient);
        let mut step = vec![0.0; gradient.len()];
        let mut hessian = Hessian::at(&mut likelihood, &point.params, &domain);
        hessian.solve(&gradient, &mut step);
        let edm = 0.5 * gradient.iter().zip(&step).map(|(g, s)| g * s).sum::<f64>();
        if !nll.is_finite() || !hessian.is_covariance() || !(0.0..LARGEST_EDM).contains(&edm) {
            return Err(refused(NotThisMinimum::Edm { edm }));
        }
        for (i, name) in names.iter().enumerate().filter(|(i, _)| !domain.fixed[*i]) {
            let (stored, here) = (point.uncertainties[i], hessian.variance(i).sqrt());
            let is_same = stored.is_none_or(|stored| (stored - here).abs() < SAME_WIDTH * here);
            if !is_same || (stored.is_none() && here > 0.0 && hessian.determines(i)) {
                return Err(refused(NotThisMinimum::Uncertainty { name: name.clone(), stored, here }));
            }
        }
        Ok(self.starting_at(point.params.clone()))
    }

    fn ranking_options(&self, request: &RankingRequest) -> Result<RankingOptions, SettingsError> {
        let poi = self.varied(None, Procedure::Ranking)?;
        let has_free = |group: &ParameterGroup| group.members.iter().any(|&i| i != poi && !self.is_fixed(i));
        let groups = match &request.groups {
            RankingGroups::OfMeasurement => self.groups_of_measurement().into_iter().filter(has_free).collect(),
            RankingGroups::These(groups) => self.chosen_groups(groups, has_free)?,
        };
        let (methods, minos) = (request.methods, request.minos);
        Ok(RankingOptions { poi, methods, minos, groups })
    }

    /// Returns the groups `chosen`, after a check that each has a free parameter and that their
    /// names are unique.
    fn chosen_groups(
        &self,
        chosen: &[RankingGroup],
        has_free: impl Fn(&ParameterGroup) -> bool,
    ) -> Result<Vec<ParameterGroup>, SettingsError> {
        let mut groups: Vec<ParameterGroup> = Vec::with_capacity(chosen.len());
        for wanted in chosen {
            let name = wanted.name();
            if groups.iter().any(|known| known.name == name) {
                return Err(SettingsError::TwoGroups(GroupTwice { name: name.to_owned() }));
            }
            let group = match wanted {
                RankingGroup::Named(name) => self.group_of_measurement(name)?,
                RankingGroup::Matching { name, patterns } => {
                    ParameterGroup::matching(name, patterns, &self.model().parameters)
                }
            };
            if !has_free(&group) {
                return Err(SettingsError::EmptyGroup { name: name.to_owned() });
            }
            groups.push(group);
        }
        Ok(groups)
    }

    /// Returns the groups of uncertainties of the measurement.
    fn groups_of_measurement(&self) -> Vec<ParameterGroup> {
        let model = self.model();
        let group = |(name, members): (&str, Vec<&str>)| {
            let members = members.into_iter().filter_map(|member| model.parameters.set(member));
            ParameterGroup { name: name.to_owned(), members: members.flat_map(ParameterSet::range).collect() }
        };
        let groups = self.compiled().measurement().map(Measurement::groups).unwrap_or_default();
        groups.into_iter().map(group).collect()
    }

    fn group_of_measurement(&self, name: &str) -> Result<ParameterGroup, SettingsError> {
        let mut groups = self.groups_of_measurement();
        match groups.iter().position(|group| group.name == name) {
            Some(found) => Ok(groups.swap_remove(found)),
            None => Err(SettingsError::UnknownGroup {
                name: name.to_owned(),
                known: groups.into_iter().map(|group| group.name).collect(),
            }),
        }
    }
}

/// The estimated distance in -ln L from which on a stored fit is not a minimum of a likelihood:
/// parameters are then a hundredth of their uncertainty away.
const LARGEST_EDM: f64 = 1e-4;

/// The relative difference of uncertainties from which on they are not those of one likelihood.
const SAME_WIDTH: f64 = 0.01;

impl Document for Ranking {
    const SCHEMA: &'static str = "ranking";

    fn fields(answer: &Answer<Self>) -> Value {
        let ranking = &answer.result;
        json!({
            "breakdown": ranking.breakdown,
            "complete": ranking.is_complete,
            "converged": ranking.converged,
            "fit": ranking.best,
            "groups": ranking.groups,
            "par_names": answer.model().parameters.names,
            "poi": ranking.poi,
            "ranking": ranking.entries,
            "warnings": ranking.warnings,
        })
    }
}
