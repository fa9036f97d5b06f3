//! The report of a fit as one HTML file, which opens without network access.
//!
//! [`data`] collects what the page shows ([`overview`] the part that one fit gives), with the keys
//! of the JSON documents, and [`page`] puts it
//! into the page. The page itself, its style and its script are built from `web/` in the
//! repository (`make web`) and part of this crate: a page has all that it needs.
//!
//! Names of a workspace come from strangers. They reach the page as JSON alone, in which `<`, `>`
//! and `&` are escaped, so no name can become markup, and the script inserts them as text. The
//! page's Content-Security-Policy allows that one script, by its digest, and no request.
//!
//! ```
//! use nextstat::full_report::FullReportRequest;
//! use nextstat::{Analysis, CompiledModel, NoMonitor, Settings};
//!
//! # let workspace = std::fs::read("../../examples/shapes.json").unwrap();
//! # let model = CompiledModel::from_json(&workspace, &Default::default())?;
//! let analysis = Analysis::new(&model, &Settings::default())?;
//! let report = analysis.full_report(&FullReportRequest::default(), &NoMonitor)?;
//! let html = ns_report::page(&ns_report::data(&report));
//! assert!(html.starts_with("<!") && html.contains("signal_region"));
//! # Ok::<(), nextstat::Error>(())
//! ```

mod data;
mod page;

pub use data::{data, overview, shown_report};
pub use page::page;
