//! Advice on workspaces that a format cannot hold: what holds them depends on the interface.

use ns_translate::{ConversionError, TargetFormat, XmlFilesError};

use super::{Face, Hint};

impl Hint for ConversionError {
    fn hint(&self, face: Face) -> Option<String> {
        match self.format {
            TargetFormat::Pyhf => Some("the format `extended` has keys for it, which pyhf does not read".to_owned()),
            TargetFormat::Hs3 | TargetFormat::Xml => {
                let extended = face.either("nextstat convert --to extended", "nextstat.convert(..., \"extended\")");
                Some(format!("`{extended}` writes every model"))
            }
            TargetFormat::Extended => None,
        }
    }
}

impl Hint for XmlFilesError {
    fn hint(&self, face: Face) -> Option<String> {
        match self {
            Self::Conversion(error) => error.hint(face),
            _ => self.name_hint(),
        }
    }
}
