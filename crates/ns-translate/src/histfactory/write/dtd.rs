//! The document type definition, without which ROOT's parser refuses a file.

/// The name of its file.
pub(crate) const FILE: &str = "HistFactorySchema.dtd";

/// An element: its content, the attributes that it must have, and those that it may have.
struct Declaration {
    name: &'static str,
    content: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const TEXT: &str = "(#PCDATA)";
const EMPTY: &str = "EMPTY";
const OF_HISTOGRAM: &[&str] = &["InputFile", "HistoName", "HistoPath"];

const fn declared(
    name: &'static str,
    content: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
) -> Declaration {
    Declaration { name, content, required, optional }
}

const DECLARATIONS: &[Declaration] = &[
    declared("Combination", "(Function*,Input+,Measurement*)", &["OutputFilePrefix"], &["Mode"]),
    declared("Function", EMPTY, &["Name", "Expression", "Dependents"], &[]),
    declared("Input", TEXT, &[], &[]),
    declared(
        "Measurement",
        "(POI,ParamSetting*,ConstraintTerm*)",
        &["Name", "Lumi", "LumiRelErr"],
        &["BinLow", "BinHigh", "Mode", "ExportOnly"],
    ),
    declared("POI", TEXT, &[], &[]),
    declared("ParamSetting", TEXT, &[], &["Val", "Const"]),
    declared("ConstraintTerm", TEXT, &["Type"], &["RelativeUncertainty"]),
    declared("Channel", "(Data*,StatErrorConfig*,Sample+)", &["Name"], OF_HISTOGRAM),
    declared("Data", EMPTY, &[], &["Name", "InputFile", "HistoName", "HistoPath"]),
    declared("StatErrorConfig", EMPTY, &[], &["RelErrorThreshold", "ConstraintType"]),
    declared(
        "Sample",
        "(StatError|HistoSys|OverallSys|ShapeSys|NormFactor|ShapeFactor)*",
        &["Name"],
        &["InputFile", "HistoName", "HistoPath", "NormalizeByTheory"],
    ),
    declared("StatError", EMPTY, &["Activate"], OF_HISTOGRAM),
    declared(
        "HistoSys",
        EMPTY,
        &["Name"],
        &[
            "InputFile",
            "HistoPath",
            "HistoFileHigh",
            "HistoPathHigh",
            "HistoNameHigh",
            "HistoFileLow",
            "HistoPathLow",
            "HistoNameLow",
        ],
    ),
    declared("OverallSys", EMPTY, &["Name", "High", "Low"], &[]),
    declared("ShapeSys", EMPTY, &["Name", "HistoName"], &["InputFile", "HistoPath", "ConstraintType"]),
    declared("NormFactor", EMPTY, &["Name", "Val", "High", "Low"], &["Const"]),
    declared("ShapeFactor", EMPTY, &["Name"], &["InputFile", "HistoName", "HistoPath", "Const"]),
];

/// Returns the text of the definition.
pub(crate) fn text() -> String {
    let mut text = String::new();
    for Declaration { name, content, required, optional } in DECLARATIONS {
        text.push_str(&format!("<!ELEMENT {name} {content}>\n"));
        let required = required.iter().map(|attribute| format!("{attribute} CDATA #REQUIRED"));
        let all: Vec<String> =
            required.chain(optional.iter().map(|attribute| format!("{attribute} CDATA #IMPLIED"))).collect();
        if !all.is_empty() {
            text.push_str(&format!("<!ATTLIST {name} {}>\n", all.join(" ")));
        }
    }
    text
}
