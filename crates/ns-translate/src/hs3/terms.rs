//! Constraint terms: distributions of which one variable is a parameter of the model.
//!
//! | type | parameter | datum |
//! |---|---|---|
//! | `gaussian_dist` | `x` or `mean` | the other one |
//! | `poisson_dist` | `mean`, or a factor of the product that it names | `x` |
//! | `lognormal_dist` | `x`: the density is that of the parameter | exp(`mu`) |
//! | `lognormal_dist` | the function `log(NAME)` that `mu` names | `x` |

use ns_core::spec::{ConstraintTerm, LogNormalDensity};

use super::Hs3Error;
use super::document::{Document, Read};
use super::kept::{Address, KeptKeys};
use super::points::Points;
use crate::json::{JsonCursor, JsonObject};
use crate::place::DocumentPlace;

/// The types of distributions that may be constraint terms.
pub(super) const TYPES: [&str; 4] = ["gaussian_dist", "normal_dist", "poisson_dist", "lognormal_dist"];

/// A number, or the name of a variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    Number(f64),
    Name(String),
}

impl Operand {
    fn read(cursor: &JsonCursor<'_>) -> Read<Self> {
        Ok(match cursor.text_if_any() {
            Some(name) => Self::Name(name.to_owned()),
            None => Self::Number(cursor.number()?),
        })
    }

    fn is_name(&self, is_meant: &dyn Fn(&str) -> bool) -> bool {
        matches!(self, Self::Name(name) if is_meant(name))
    }
}

/// What the numbers of a term are.
#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Gaussian {
        sigma: Operand,
    },
    /// The mean is the parameter times all of these.
    Poisson {
        factors: Vec<Operand>,
    },
    LogNormal {
        sigma: Operand,
        density: LogNormalDensity,
    },
    /// A term whose numbers the document does not have.
    Implied(ConstraintTerm),
}

/// A constraint term as written: its numbers may be names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WrittenTerm {
    pub(super) parameter: String,
    shape: Shape,
    datum: Operand,
    pointer: String,
}

/// A constraint term with its datum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Term {
    pub(super) term: ConstraintTerm,
    pub(super) datum: f64,
}

impl Term {
    /// Returns a number that is beyond the range of doubles: exponentials and products may be.
    fn overflow(&self) -> Option<f64> {
        let number = match self.term {
            ConstraintTerm::Poisson { tau } => tau,
            ConstraintTerm::LogNormal { .. } if self.datum <= 0.0 => return Some(self.datum),
            ConstraintTerm::LogNormal { kappa, .. } if kappa <= 0.0 => return Some(kappa),
            ConstraintTerm::LogNormal { kappa, .. } => kappa,
            _ => 0.0,
        };
        [number, self.datum].into_iter().find(|number| !number.is_finite())
    }
}

impl WrittenTerm {
    /// Returns a term that the type of a modifier implies.
    pub(super) fn implied(parameter: &str, term: ConstraintTerm, datum: f64) -> Self {
        let (parameter, pointer) = (parameter.to_owned(), String::new());
        Self { parameter, shape: Shape::Implied(term), datum: Operand::Number(datum), pointer }
    }

    /// Returns whether it is a Gaussian.
    pub(super) fn is_gaussian(&self) -> bool {
        matches!(&self.shape, Shape::Gaussian { .. } | Shape::Implied(ConstraintTerm::Gaussian { .. }))
    }

    /// Returns the place of the term.
    pub(super) fn place(&self) -> DocumentPlace {
        DocumentPlace { pointer: self.pointer.clone(), position: None }
    }

    /// Looks up the values of names.
    pub(super) fn resolve(&self, points: &Points) -> Read<Term> {
        let value = |operand: &Operand| self.value(operand, points);
        let datum = value(&self.datum)?;
        let found = match &self.shape {
            Shape::Implied(term) => Term { term: *term, datum },
            Shape::Gaussian { sigma } => Term { term: ConstraintTerm::Gaussian { sigma: value(sigma)? }, datum },
            Shape::Poisson { factors } => {
                let tau = factors.iter().map(value).product::<Read<f64>>()?;
                Term { term: ConstraintTerm::Poisson { tau }, datum }
            }
            Shape::LogNormal { sigma, density } => {
                let (kappa, density) = (value(sigma)?.exp(), *density);
                let datum = if density == LogNormalDensity::Parameter { datum.exp() } else { datum };
                Term { term: ConstraintTerm::LogNormal { kappa, density }, datum }
            }
        };
        match found.overflow() {
            None => Ok(found),
            Some(number) => {
                let what = "a constraint term with the number";
                Err(Hs3Error::Unsupported { what, name: number.to_string(), place: self.place() })
            }
        }
    }

    fn value(&self, operand: &Operand, points: &Points) -> Read<f64> {
        match operand {
            Operand::Number(value) => Ok(*value),
            Operand::Name(name) => {
                points.value(name).ok_or_else(|| Hs3Error::NoValue { name: name.clone(), place: self.place() })
            }
        }
    }
}

/// Reads distributions as constraint terms.
pub(super) struct TermReader<'a, 'd> {
    pub(super) document: &'a Document<'d>,
    /// Returns whether a name is that of a parameter which the term may constrain.
    pub(super) is_parameter: &'a dyn Fn(&str) -> bool,
    /// The parameter that it must constrain, for messages.
    pub(super) wanted: Option<&'a str>,
}

impl TermReader<'_, '_> {
    /// Reads the distribution at `cursor`; `datum` is that of a likelihood which has the
    /// distribution among its data.
    pub(super) fn read(&self, cursor: &JsonCursor<'_>, datum: Option<f64>, kept: &mut KeptKeys) -> Read<WrittenTerm> {
        let open = cursor.open_object()?;
        let (name, kind) = (open.need("name")?, open.need("type")?);
        let list = Address::TOP.key("distributions");
        let known = ["name", "type", "x", "mean", "sigma", "mu", "integer"];
        let object = kept.object(cursor, &known, list.entry(name.text()?))?;
        let operand = |key| -> Read<Operand> { Operand::read(&object.need(key)?) };
        let given = |x: Operand| datum.map_or(x, Operand::Number);
        let found = match kind.text()? {
            "gaussian_dist" | "normal_dist" => {
                let shape = Shape::Gaussian { sigma: operand("sigma")? };
                let (x, mean) = (operand("x")?, operand("mean")?);
                match (x.is_name(self.is_parameter), mean.is_name(self.is_parameter)) {
                    (true, false) if datum.is_none() => Some((x, shape, mean)),
                    (false, true) => Some((mean, shape, given(x))),
                    _ => None,
                }
            }
            "poisson_dist" => self
                .poisson(&operand("mean")?)?
                .map(|(mean, shape)| {
                    let x = operand("x").map(given);
                    x.map(|x| (mean, shape, x))
                })
                .transpose()?,
            "lognormal_dist" => self.log_normal(&object, datum)?,
            _ => return Err(super::unsupported("a constraint term of type", &kind)),
        };
        match found {
            Some((Operand::Name(parameter), shape, datum)) => {
                Ok(WrittenTerm { parameter, shape, datum, pointer: cursor.pointer() })
            }
            _ => {
                let parameter = self.wanted.map_or_else(|| "a parameter".to_owned(), |name| format!("`{name}`"));
                Err(Hs3Error::NotConstraint { name: name.text()?.to_owned(), parameter, place: cursor.place() })
            }
        }
    }

    /// Returns the parameter that the mean of a Poisson distribution is proportional to.
    fn poisson(&self, mean: &Operand) -> Read<Option<(Operand, Shape)>> {
        if mean.is_name(self.is_parameter) {
            return Ok(Some((mean.clone(), Shape::Poisson { factors: Vec::new() })));
        }
        let Operand::Name(name) = mean else { return Ok(None) };
        let Some(function) = self.document.functions.get(name) else { return Ok(None) };
        let object = function.open_object()?;
        if object.need("type")?.text()? != "product" {
            return Ok(None);
        }
        let factors = object.need("factors")?;
        let factors = factors.list()?.map(|factor| Operand::read(&factor)).collect::<Read<Vec<_>>>()?;
        let (parameters, factors): (Vec<_>, Vec<_>) =
            factors.into_iter().partition(|factor| factor.is_name(self.is_parameter));
        let [parameter] = &parameters[..] else { return Ok(None) };
        Ok(Some((parameter.clone(), Shape::Poisson { factors })))
    }

    fn log_normal(&self, object: &JsonObject<'_>, datum: Option<f64>) -> Read<Option<(Operand, Shape, Operand)>> {
        let operand = |key| -> Read<Operand> { Operand::read(&object.need(key)?) };
        let (x, mu, sigma) = (operand("x")?, operand("mu")?, operand("sigma")?);
        if x.is_name(self.is_parameter) {
            let is_datum = datum.is_none() && !mu.is_name(self.is_parameter);
            return Ok(is_datum.then_some((x, Shape::LogNormal { sigma, density: LogNormalDensity::Parameter }, mu)));
        }
        let Operand::Name(function) = &mu else { return Ok(None) };
        let Some(parameter) = self.logarithm(function)? else { return Ok(None) };
        let x = datum.map_or(x, Operand::Number);
        Ok(Some((parameter, Shape::LogNormal { sigma, density: LogNormalDensity::Datum }, x)))
    }

    /// Returns the parameter whose logarithm the function `name` is.
    fn logarithm(&self, name: &str) -> Read<Option<Operand>> {
        let Some(function) = self.document.functions.get(name) else { return Ok(None) };
        let object = function.open_object()?;
        if object.need("type")?.text()? != "generic_function" {
            return Ok(None);
        }
        let expression = object.need("expression")?;
        let argument = expression.text()?.trim().strip_prefix("log(").and_then(|rest| rest.strip_suffix(')'));
        let argument = argument.map(|name| Operand::Name(name.trim().to_owned()));
        Ok(argument.filter(|operand| operand.is_name(self.is_parameter)))
    }
}
