//! Runs candle's decoder of GGUF files, and times what it is asked, request by request.
//!
//! `candle-peer MODEL.gguf`; threads are those of `RAYON_NUM_THREADS`. Requests and answers are
//! lines of JSON: {"prefill": [ids]} starts anew and reads a prompt, {"decode": [ids]} goes on
//! token by token, {"logits": []} prints the last row. Answers have the elapsed and the processor
//! seconds.

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use candle_core::quantized::gguf_file::Content;
use candle_core::{Device, Tensor};
use candle_transformers::models::quantized_llama::ModelWeights;
use serde_json::{Value, json};

struct Peer {
    model: ModelWeights,
    length: usize,
    last: Tensor,
}

impl Peer {
    fn open(path: &str) -> Result<Peer, Box<dyn Error>> {
        let mut file = std::fs::File::open(path)?;
        let content = Content::read(&mut file)?;
        let model = ModelWeights::from_gguf(content, &mut file, &Device::Cpu)?;
        Ok(Peer { model, length: 0, last: Tensor::new(&[0.0_f32], &Device::Cpu)? })
    }

    /// Goes on with `tokens`; at position 0 the model forgets what was before.
    fn read(&mut self, tokens: &[u32]) -> Result<(), Box<dyn Error>> {
        let tokens = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        self.last = self.model.forward(&tokens, self.length)?;
        self.length += tokens.dim(1)?;
        Ok(())
    }

    fn answer(&mut self, request: &Value) -> Result<Value, Box<dyn Error>> {
        let ids = |verb: &str| -> Option<Vec<u32>> {
            request.get(verb)?.as_array()?.iter().map(|id| Some(id.as_u64()? as u32)).collect()
        };
        if request.get("logits").is_some() {
            return Ok(json!(self.last.flatten_all()?.to_vec1::<f32>()?));
        }
        let (clock, before) = (Instant::now(), processor_seconds()?);
        if let Some(tokens) = ids("prefill") {
            self.length = 0;
            self.read(&tokens)?;
        }
        for token in ids("decode").unwrap_or_default() {
            self.read(&[token])?;
        }
        Ok(json!({ "elapsed": clock.elapsed().as_secs_f64(), "processor": processor_seconds()? - before }))
    }
}

/// Seconds that processors worked for the threads of this process; of threads that end while they
/// are counted, nothing.
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let mut nanoseconds = 0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let Ok(line) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += line.split_whitespace().next().ok_or("an empty file")?.parse::<u64>()?;
    }
    Ok(nanoseconds as f64 * 1e-9)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which model?")?;
    let mut peer = Peer::open(&path)?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({ "version": "candle 0.11.0" }))?;
    out.flush()?;
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", peer.answer(&serde_json::from_str(&line?)?)?)?;
        out.flush()?;
    }
    Ok(())
}
