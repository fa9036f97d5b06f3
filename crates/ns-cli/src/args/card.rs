//! Arguments that say how a data card of Combine is read.

use clap::Args;
use ns_translate::CardOptions;

use super::values::finite;

/// What a data card does not say itself.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CardArgs {
    /// Mass that `$MASS` stands for in a Combine card; also `-m`, where that is not a modifier
    #[arg(long, value_name = "MASS", value_parser = finite, allow_hyphen_values = true, help_heading = "Combine cards")]
    mass: Option<f64>,

    /// Physics model of a Combine card: `multiSignalModel` or `floatingXSHiggs`
    #[arg(short = 'P', long, value_name = "MODEL", help_heading = "Combine cards")]
    physics_model: Option<String>,

    /// Option of the physics model, such as `map=.*/ggH:r_ggH[1,0,10]`; repeatable
    #[arg(long = "PO", visible_alias = "physics-option", value_name = "OPTION", help_heading = "Combine cards")]
    physics_option: Vec<String>,

    /// What `$WORD` stands for in a Combine card; repeatable
    #[arg(long, value_name = "WORD=VALUE", value_parser = keyword, help_heading = "Combine cards")]
    keyword_value: Vec<(String, String)>,
}

impl CardArgs {
    /// Returns the options of the reader.
    pub(crate) fn options(&self) -> CardOptions {
        CardOptions {
            mass: self.mass,
            physics_model: self.physics_model.clone(),
            model_options: self.physics_option.clone(),
            keywords: self.keyword_value.clone(),
        }
    }
}

fn keyword(text: &str) -> Result<(String, String), &'static str> {
    match text.split_once('=') {
        Some((word, value)) if !word.is_empty() => Ok((word.to_owned(), value.to_owned())),
        _ => Err("expected `WORD=VALUE`"),
    }
}
