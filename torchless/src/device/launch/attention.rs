//! Launches of attention, and the rule that decides whether one block walks over all positions of a
//! head or each tile of them has its own block.
//!
//! The rule changes no bit: both ways do the same sums in the same order. It exists because one
//! block for each head of one token leaves most of a large GPU idle, and takes as long as all its
//! tiles in sequence.

use ns_device::{Buffer, KernelArgument, WARP};

use super::{LANES, Launcher, TokenPlaces, area, count, holds, reaches};
use crate::cpu::backend::Heads;
use crate::device::kernels::TransformerKernel;
use crate::device::layout::{AttentionLayout, GROUP, MAX_HEAD_DIM};
use crate::error::Error;

/// Blocks that keep a large GPU busy: four on each of some 130 multiprocessors.
const BUSY_BLOCKS: usize = 512;

/// Attention of T tokens.
#[derive(Debug, Clone, Copy)]
pub(in crate::device) struct Attend<'a> {
    pub(in crate::device) heads: Heads,
    pub(in crate::device) n_rows: usize,
    /// Positions that the last of the tokens sees, were there no window.
    pub(in crate::device) n_positions: usize,
    /// Rows of keys and values up to the last that a token sees.
    pub(in crate::device) kv_rows: usize,
    pub(in crate::device) window: Option<usize>,
    pub(in crate::device) scale: f32,
    /// Positions of the tokens, then the rows where their sequences' keys begin, (2, T), from an
    /// offset on. That none is beyond `n_positions`, and no row of a sequence beyond `kv_rows`, is
    /// the caller's promise.
    pub(in crate::device) places: TokenPlaces<'a>,
    /// (T, heads, D)
    pub(in crate::device) queries: &'a Buffer<f32>,
    /// (`kv_rows`, KV heads, D)
    pub(in crate::device) keys: &'a Buffer<f32>,
    pub(in crate::device) values: &'a Buffer<f32>,
}

/// The query of one token, and the keys that it is scored with.
#[derive(Debug, Clone, Copy)]
pub(in crate::device) struct ScoredRows<'a> {
    /// (heads, D)
    pub(in crate::device) queries: &'a Buffer<f32>,
    /// (positions, KV heads, D)
    pub(in crate::device) keys: &'a Buffer<f32>,
}

/// Returns the number of tiles of `n_seen` positions if each is to have its own block: there are
/// several, and the heads of all tokens alone do not keep a large GPU busy.
fn tiles_apart(heads: Heads, n_rows: usize, n_seen: usize) -> Option<usize> {
    let n_tiles = n_seen.div_ceil(LANES as usize);
    (n_tiles > 1 && heads.n_heads.saturating_mul(n_rows) < BUSY_BLOCKS).then_some(n_tiles)
}

/// Returns how many numbers a tile has: its greatest score, its sum, its values.
fn tile_width(heads: Heads) -> usize {
    2 + heads.head_dim
}

/// Returns how many numbers the tiles of `n_rows` tokens take if each sees at most `n_seen`
/// positions.
pub(in crate::device) fn room_of_tiles(heads: Heads, n_rows: usize, n_seen: usize) -> usize {
    let n_tiles = tiles_apart(heads, n_rows, n_seen).unwrap_or(0);
    [n_tiles, heads.n_heads, tile_width(heads)].iter().fold(n_rows, |room, &size| room.saturating_mul(size))
}

/// Returns the most that [`room_of_tiles`] gives for any number of tokens up to `n_rows`.
pub(in crate::device) fn most_room_of_tiles(heads: Heads, n_rows: usize, n_seen: usize) -> usize {
    room_of_tiles(heads, n_rows.min((BUSY_BLOCKS - 1) / heads.n_heads.max(1)), n_seen)
}

impl Attend<'_> {
    fn n_seen(&self) -> usize {
        self.window.map_or(self.n_positions, |window| window.min(self.n_positions))
    }

    fn layout(&self, n_tiles: usize) -> Result<AttentionLayout, Error> {
        Ok(AttentionLayout {
            window: self.window.map_or(Ok(0), count)?,
            places_offset: count(self.places.offset)?,
            n_tiles: count(n_tiles)?,
            ..sizes(self.heads, self.n_rows, self.scale)?
        })
    }

    /// Returns the number of heads of all tokens, each of which is at least one block.
    fn n_heads(&self) -> Result<usize, Error> {
        area(&[self.n_rows, self.heads.n_heads])
    }

    /// Returns the launch arguments of a kernel that reads keys and values.
    fn arguments<'b>(&'b self, words: &'b [u32], out: &'b mut Buffer<f32>) -> [KernelArgument<'b>; 6] {
        [
            KernelArgument::uints(words),
            KernelArgument::read(self.places.places),
            KernelArgument::read(self.queries),
            KernelArgument::read(self.keys),
            KernelArgument::read(self.values),
            KernelArgument::write(out),
        ]
    }

    fn check(&self, kernel: TransformerKernel, out: &Buffer<f32>) -> Result<(), Error> {
        let n = area(&[self.n_heads()?, self.heads.head_dim])?;
        holds(kernel, "queries", self.queries, n)?;
        holds(kernel, "out", out, n)?;
        let n_kv = area(&[self.kv_rows, self.heads.n_kv_heads, self.heads.head_dim])?;
        holds(kernel, "keys", self.keys, n_kv)?;
        holds(kernel, "values", self.values, n_kv)?;
        holds(kernel, "places", self.places.places, self.places.offset + 2 * self.n_rows)
    }
}

impl Launcher {
    /// Computes out (T, heads, D): attention of every token. `tiles` has [`room_of_tiles`].
    pub(in crate::device) fn attention(
        &self,
        attend: Attend<'_>,
        tiles: &mut Buffer<f32>,
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        match tiles_apart(attend.heads, attend.n_rows, attend.n_seen()) {
            Some(n_tiles) => self.attention_of_tiles(attend, n_tiles, tiles, out),
            None => self.attention_walk(attend, out),
        }
    }

    /// Launches a block for each head of each token.
    pub(in crate::device) fn attention_walk(&self, attend: Attend<'_>, out: &mut Buffer<f32>) -> Result<(), Error> {
        let kernel = TransformerKernel::Attention;
        attend.check(kernel, out)?;
        let layout = attend.layout(0)?;
        let words = layout.words();
        // And what all tiles so far come to.
        let shared = room_of_block(layout.head_dim) + layout.head_dim;
        self.launch(kernel, count(attend.n_heads()?)?, shared, &attend.arguments(&words, out))
    }

    /// Launches a block for each tile of each head of each token, `n_tiles` for every token whether
    /// it sees as many or not; then one for each head.
    pub(in crate::device) fn attention_of_tiles(
        &self,
        attend: Attend<'_>,
        n_tiles: usize,
        tiles: &mut Buffer<f32>,
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let (each, all) = (TransformerKernel::AttentionTiles, TransformerKernel::AttentionSum);
        attend.check(all, out)?;
        reaches(each, "positions of the tiles", n_tiles.saturating_mul(LANES as usize), attend.n_seen())?;
        let n_blocks = area(&[attend.n_heads()?, n_tiles])?;
        holds(each, "tiles", tiles, area(&[n_blocks, tile_width(attend.heads)])?)?;
        let layout = attend.layout(n_tiles)?;
        let words = layout.words();
        let arguments = attend.arguments(&words, tiles);
        self.launch(each, count(n_blocks)?, room_of_block(layout.head_dim), &arguments)?;
        let places = KernelArgument::read(attend.places.places);
        let arguments =
            [KernelArgument::uints(&words), places, KernelArgument::read(tiles), KernelArgument::write(out)];
        self.launch(all, count(attend.n_heads()?)?, 0, &arguments)
    }

    /// Computes scores (heads, positions) of one token.
    pub(in crate::device) fn scores(
        &self,
        heads: Heads,
        scale: f32,
        n_positions: usize,
        ScoredRows { queries, keys }: ScoredRows<'_>,
        scores: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let kernel = TransformerKernel::AttentionScores;
        holds(kernel, "queries", queries, area(&[heads.n_heads, heads.head_dim])?)?;
        holds(kernel, "keys", keys, area(&[n_positions, heads.n_kv_heads, heads.head_dim])?)?;
        holds(kernel, "scores", scores, area(&[heads.n_heads, n_positions])?)?;
        let layout = sizes(heads, n_positions, scale)?;
        let blocks = layout.n_heads.saturating_mul(layout.n_rows.div_ceil(LANES / GROUP));
        let words = layout.words();
        let arguments = [
            KernelArgument::uints(&words),
            KernelArgument::read(queries),
            KernelArgument::read(keys),
            KernelArgument::write(scores),
        ];
        self.launch(kernel, blocks, 0, &arguments)
    }

    /// Computes out (heads, D) of one token.
    pub(in crate::device) fn weighted_sum(
        &self,
        heads: Heads,
        n_positions: usize,
        weights: &Buffer<f32>,
        values: &Buffer<f32>,
        out: &mut Buffer<f32>,
    ) -> Result<(), Error> {
        let kernel = TransformerKernel::WeightedSum;
        holds(kernel, "weights", weights, area(&[heads.n_heads, n_positions])?)?;
        holds(kernel, "values", values, area(&[n_positions, heads.n_kv_heads, heads.head_dim])?)?;
        holds(kernel, "out", out, area(&[heads.n_heads, heads.head_dim])?)?;
        let layout = sizes(heads, n_positions, 0.0)?;
        let words = layout.words();
        let arguments = [
            KernelArgument::uints(&words),
            KernelArgument::read(weights),
            KernelArgument::read(values),
            KernelArgument::write(out),
        ];
        self.launch(kernel, layout.n_heads, LANES / WARP * layout.head_dim, &arguments)
    }
}

/// Returns how many numbers of shared memory a tile takes: the query, the scores, and each warp's
/// greatest score and values.
fn room_of_block(head_dim: u32) -> u32 {
    head_dim + LANES + LANES / WARP * (1 + head_dim)
}

/// Refuses heads that are wider than a lane has sums for.
pub(in crate::device) fn check_head_dim(head_dim: usize) -> Result<(), Error> {
    let limit = MAX_HEAD_DIM as usize;
    if head_dim <= limit { Ok(()) } else { Err(Error::HeadTooWide { head_dim, limit }) }
}

fn sizes(heads: Heads, n_rows: usize, scale: f32) -> Result<AttentionLayout, Error> {
    check_head_dim(heads.head_dim)?;
    Ok(AttentionLayout {
        n_rows: count(n_rows)?,
        n_heads: count(heads.n_heads)?,
        n_kv_heads: count(heads.n_kv_heads)?,
        head_dim: count(heads.head_dim)?,
        window: 0,
        places_offset: 0,
        n_tiles: 0,
        scale,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_apart_where_heads_alone_leave_a_device_idle() {
        let heads = Heads { n_heads: 32, n_kv_heads: 8, head_dim: 64 };
        assert_eq!((tiles_apart(heads, 1, 128), tiles_apart(heads, 1, 129)), (None, Some(2)));
        assert_eq!((tiles_apart(heads, 15, 1000), tiles_apart(heads, 16, 1000)), (Some(8), None));
        assert_eq!((room_of_tiles(heads, 1, 128), room_of_tiles(heads, 3, 300)), (0, 3 * 32 * 3 * 66));
        let most = (1..200).map(|n_rows| room_of_tiles(heads, n_rows, 300)).max();
        assert_eq!(Some(most_room_of_tiles(heads, 200, 300)), most);
        assert_eq!(most_room_of_tiles(heads, 2, 300), room_of_tiles(heads, 2, 300));
        assert_eq!(most_room_of_tiles(Heads { n_heads: 600, ..heads }, 200, 300), 0);
    }
}

#[cfg(all(test, feature = "emulated"))]
mod emulated {
    use proptest::prelude::*;

    use super::*;

    /// Returns random numbers between -1 and 1.
    fn numbers(length: usize, mut state: u64) -> Vec<f32> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..length).map(|_| next()).collect()
    }

    /// Launches attention of two tokens that see 200 and 300 positions of 420 rows, with buffers so
    /// much shorter than that.
    fn refused(short_keys: usize, short_values: usize, n_tiles: usize) -> Option<(&'static str, usize, usize)> {
        let device = crate::device::open(ns_device::Backend::Emulated, 0).expect("the emulation");
        let launcher = Launcher::new(device.clone()).expect("single precision");
        let heads = Heads { n_heads: 4, n_kv_heads: 2, head_dim: 8 };
        let zeros = |length: usize| device.upload(&vec![0.0_f32; length]).expect("memory");
        let (keys, values, queries) = (zeros(420 * 16 - short_keys), zeros(420 * 16 - short_values), zeros(64));
        let places = device.upload(&[199_u32, 299, 0, 120]).expect("memory");
        let attend = Attend {
            heads,
            n_rows: 2,
            n_positions: 300,
            kv_rows: 420,
            window: None,
            scale: 1.0,
            places: TokenPlaces { places: &places, offset: 0 },
            queries: &queries,
            keys: &keys,
            values: &values,
        };
        let (mut tiles, mut out) = (zeros(8 * 3 * tile_width(heads)), zeros(64));
        let walk = launcher.attention_walk(attend, &mut out);
        let apart = launcher.attention_of_tiles(attend, n_tiles, &mut tiles, &mut out);
        let of_error = |error: Error| match error {
            Error::Shape { argument, length, expected, .. } => (argument, length, expected),
            other => panic!("{other}"),
        };
        let (walk, apart) = (walk.err().map(of_error), apart.err().map(of_error));
        assert!(walk.is_none() || walk == apart);
        apart
    }

    #[test]
    fn reads_past_an_end_are_refused() {
        assert_eq!(refused(0, 0, 3), None);
        assert_eq!(refused(1, 0, 3), Some(("keys", 6719, 6720)));
        assert_eq!(refused(0, 1, 3), Some(("values", 6719, 6720)));
        assert_eq!(refused(0, 0, 2), Some(("positions of the tiles", 256, 300)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn one_walk_and_tiles_apart_are_the_same_bits(
            (n_kv_heads, group, half) in (1..3_usize, 1..4_usize, 1..80_usize),
            places in prop::collection::vec((0..400_u32, 0..20_u32), 1..4),
            window in prop::option::of(1..300_usize),
            // Weights that are alike, and a few that leave nothing of the others.
            scale in prop::sample::select(vec![0.1_f32, 50.0]),
            (spare, seed) in (0..2_usize, any::<u64>()),
        ) {
            let device = crate::device::open(ns_device::Backend::Emulated, 0).expect("the emulation");
            let launcher = Launcher::new(device.clone()).expect("single precision");
            let heads = Heads { n_heads: n_kv_heads * group, n_kv_heads, head_dim: 2 * half };
            let (n_rows, width) = (places.len(), heads.n_heads * heads.head_dim);
            let n_kv = 420 * n_kv_heads * heads.head_dim;
            let [queries, keys, values] = [(n_rows * width, 1), (n_kv, 2), (n_kv, 3)]
                .map(|(length, salt)| device.upload(&numbers(length, seed ^ salt)).expect("memory"));
            let (positions, starts): (Vec<u32>, Vec<u32>) = places.iter().copied().unzip();
            let n_positions = *positions.iter().max().expect("tokens") as usize + 1;
            let places = device.upload(&[positions, starts].concat()).expect("memory");
            let places = TokenPlaces { places: &places, offset: 0 };
            let (queries, keys, values) = (&queries, &keys, &values);
            let attend =
                Attend { heads, n_rows, n_positions, kv_rows: 420, window, scale, places, queries, keys, values };
            let room = |length| device.uninitialised(length).expect("memory");
            let (mut walk, mut apart) = (room(n_rows * width), room(n_rows * width));
            launcher.attention_walk(attend, &mut walk).expect("it fits");
            let n_tiles = attend.n_seen().div_ceil(LANES as usize) + spare;
            let mut tiles = room(n_rows * heads.n_heads * n_tiles * tile_width(heads));
            launcher.attention_of_tiles(attend, n_tiles, &mut tiles, &mut apart).expect("it fits");
            let bits = |buffer: &Buffer<f32>| -> Vec<u32> {
                buffer.download().expect("numbers").iter().map(|number| number.to_bits()).collect()
            };
            prop_assert_eq!(bits(&walk), bits(&apart));
            prop_assert!(walk.download().expect("numbers").iter().all(|number| number.is_finite()));
        }
    }
}
