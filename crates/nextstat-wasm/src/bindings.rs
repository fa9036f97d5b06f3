//! The crate for JavaScript: text and bytes in, text out, errors as exceptions.

use std::cell::RefCell;

use js_sys::{Error, Function, Reflect};
use nextstat::Monitor;
use serde::Serialize;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::error::EngineError;

thread_local! {
    /// Who is told how far the work is. JavaScript's functions stay on their thread, while a
    /// [`Monitor`] may be called from any; here there is one.
    static LISTENER: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Tells the function in [`LISTENER`] how far the work is.
struct Listener;

impl Monitor for Listener {
    fn progress(&self, done: usize, total: usize) {
        LISTENER.with_borrow(|listener| {
            // A page that cannot show progress does not end the work.
            let _ = listener.as_ref().map(|listener| {
                listener.call2(&JsValue::NULL, &JsValue::from_f64(done as f64), &JsValue::from_f64(total as f64))
            });
        });
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Returns an `Error` called `EngineError` with the message, and the advice as its property `hint`.
/// Every other exception is a defect, after which the module is not to be used.
fn thrown(error: impl Into<EngineError>) -> JsValue {
    let EngineError { message, hint } = error.into();
    let exception = Error::new(&message);
    exception.set_name("EngineError");
    let hint = hint.map_or(JsValue::UNDEFINED, JsValue::from);
    // A property can be set on every new object.
    let _ = Reflect::set(&exception, &JsValue::from_str("hint"), &hint);
    exception.into()
}

fn text(value: &impl Serialize) -> Result<String, JsValue> {
    serde_json::to_string(value).map_err(|error| thrown(EngineError { message: error.to_string(), hint: None }))
}

/// Reports a panic, a defect of the engine, with its message and place: WebAssembly itself says
/// `unreachable`.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&format!("the engine failed: {panic}"))));
}

/// Files in memory.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Files(crate::Files);

#[wasm_bindgen]
impl Files {
    /// Returns no files.
    #[wasm_bindgen(constructor)]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file or the files of an archive, and returns them as JSON.
    ///
    /// # Errors
    ///
    /// As [`crate::Files::add`].
    pub fn add(&mut self, name: &str, bytes: Vec<u8>) -> Result<String, JsValue> {
        text(&self.0.add(name, bytes).map_err(thrown)?)
    }

    /// Returns all files as JSON.
    ///
    /// # Errors
    ///
    /// None.
    pub fn list(&self) -> Result<String, JsValue> {
        text(&self.0.list())
    }

    /// Returns the document of a patch set.
    ///
    /// # Errors
    ///
    /// As [`crate::Files::patchset`].
    pub fn patchset(&self, workspace: &str, patchset: &str) -> Result<String, JsValue> {
        text(&self.0.patchset(workspace, patchset).map_err(thrown)?)
    }
}

/// One model.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Session(crate::Session);

#[wasm_bindgen]
impl Session {
    /// Makes a model of `files`.
    ///
    /// # Errors
    ///
    /// As [`crate::Session::open`].
    pub fn open(files: &Files, request: &str) -> Result<Session, JsValue> {
        crate::Session::open(&files.0, request).map(Self).map_err(thrown)
    }

    /// Returns what the model does not have of its files, as JSON.
    ///
    /// # Errors
    ///
    /// None.
    pub fn warnings(&self) -> Result<String, JsValue> {
        text(&self.0.warnings())
    }

    /// Returns the document that answers `question`; `progress` is called with the units done and
    /// all units.
    ///
    /// # Errors
    ///
    /// As [`crate::Session::run`].
    pub fn run(&self, question: &str, progress: Option<Function>) -> Result<String, JsValue> {
        LISTENER.set(progress);
        let answer = self.0.run(question, &Listener);
        LISTENER.set(None);
        answer.map_err(thrown)
    }

    /// Returns the command and the Python program that give the answer to `question`, as JSON.
    ///
    /// # Errors
    ///
    /// As [`crate::Session::reproduce`].
    pub fn reproduce(&self, question: &str) -> Result<String, JsValue> {
        text(&self.0.reproduce(question).map_err(thrown)?)
    }
}

/// Returns the document of the exclusion contours of a grid.
///
/// # Errors
///
/// As [`crate::exclusion`].
#[wasm_bindgen]
pub fn exclusion(question: &str) -> Result<String, JsValue> {
    crate::exclusion(question).map_err(thrown)
}
