//! The attributes of one node, taken one by one: what is left at the end is not known here.

use super::schema::{AttributeProto, NodeProto, TensorProto};
use crate::error::{Error, NodeProblem};

/// Attributes that were not taken yet.
pub(super) struct Attributes<'a> {
    node: &'a str,
    operator: &'a str,
    left: Vec<&'a AttributeProto>,
}

impl<'a> Attributes<'a> {
    pub(super) fn of(node: &'a str, proto: &'a NodeProto) -> Attributes<'a> {
        Attributes { node, operator: &proto.op_type, left: proto.attribute.iter().collect() }
    }

    fn take(&mut self, name: &str) -> Option<&'a AttributeProto> {
        let index = self.left.iter().position(|attribute| attribute.name == name)?;
        Some(self.left.swap_remove(index))
    }

    pub(super) fn int(&mut self, name: &str) -> Option<i64> {
        self.take(name).map(|attribute| attribute.i)
    }

    pub(super) fn flag(&mut self, name: &str, default: bool) -> bool {
        self.int(name).map_or(default, |value| value != 0)
    }

    pub(super) fn float(&mut self, name: &str, default: f32) -> f32 {
        self.take(name).map_or(default, |attribute| attribute.f)
    }

    pub(super) fn ints(&mut self, name: &str) -> Option<Vec<i64>> {
        self.take(name).map(|attribute| attribute.ints.clone())
    }

    pub(super) fn tensor(&mut self, name: &str) -> Option<&'a TensorProto> {
        self.take(name).and_then(|attribute| attribute.t.as_ref())
    }

    pub(super) fn text(&mut self, name: &str, default: &str) -> String {
        self.take(name).map_or(default.into(), |attribute| String::from_utf8_lossy(&attribute.s).into_owned())
    }

    /// Takes an attribute that changes nothing here.
    pub(super) fn ignore(&mut self, name: &str) {
        self.take(name);
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&'a AttributeProto> {
        self.left.iter().find(|attribute| attribute.name == name).copied()
    }

    /// Takes an attribute of which one value is supported.
    pub(super) fn only(&mut self, name: &str, value: i64) -> Result<(), Error> {
        match self.int(name) {
            Some(found) if found != value => Err(self.refuse(name, found.to_string())),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse(&self, name: &str, value: String) -> Error {
        Error::node(self.node, self.operator, NodeProblem::Attribute { attribute: name.into(), value })
    }

    /// Refuses what was not taken.
    pub(super) fn end(self) -> Result<(), Error> {
        match self.left.first() {
            Some(attribute) => Err(self.refuse(&attribute.name, "given".into())),
            None => Ok(()),
        }
    }
}
