//! Ragged inputs: the same bits as padded ones, whatever the layout, and errors for what does not
//! fit.

use torchless::Threads;
use torchless::encoder::{
    Column, EncodeOptions, Encoder, EncoderEvents, EncoderInput, InputValues, Offsets, OutputValues, RaggedInput,
    ScratchPool,
};

use super::models::folder;
use super::npz::{Array, Numbers, npy, read};
use crate::random_model::fresh_folder;
use crate::support::program;

/// Jets of a fixture: padded, and the numbers of their particles.
pub(super) struct Jets {
    pub(super) model: Encoder,
    pub(super) padded: Vec<(String, Array)>,
    pub(super) lengths: Vec<usize>,
}

impl Jets {
    pub(super) fn of(name: &str) -> Jets {
        let mut padded = read(&folder().join(format!("{name}.npz")));
        padded.retain(|(name, _)| name != "logits");
        let mask = &padded.iter().find(|(name, _)| name == "mask").expect("a mask").1;
        let Numbers::Bool(values) = &mask.numbers else { panic!("truth values") };
        let size = *mask.shape.last().expect("an axis");
        let lengths = values.chunks(size).map(|row| row.iter().filter(|&&is_set| is_set).count()).collect();
        Jets { model: Encoder::open(folder().join(format!("{name}.onnx"))).expect("a model"), padded, lengths }
    }

    pub(super) fn offsets(&self, first: i64) -> Vec<i64> {
        let ends = self.lengths.iter().scan(first, |end, &length| {
            *end += length as i64;
            Some(*end)
        });
        std::iter::once(first).chain(ends).collect()
    }

    /// Returns the column `column` of an input `[events, columns, places]`, without padding.
    fn column(&self, input: &str, column: usize) -> Vec<f32> {
        let array = &self.padded.iter().find(|(name, _)| name == input).expect("an input").1;
        let Numbers::F32(values) = &array.numbers else { panic!("single precision") };
        let (columns, places) = (array.shape[1], array.shape[2]);
        let rows = values.chunks(places).enumerate().filter(|(row, _)| row % columns == column);
        rows.flat_map(|(row, values)| values[..self.lengths[row / columns]].to_vec()).collect()
    }

    /// Returns the rows `[particles, columns]` of an input.
    pub(super) fn rows(&self, input: &str, n_columns: usize) -> Vec<f32> {
        let columns: Vec<Vec<f32>> = (0..n_columns).map(|column| self.column(input, column)).collect();
        (0..columns[0].len()).flat_map(|particle| columns.iter().map(move |column| column[particle])).collect()
    }

    fn encode(&self, threads: usize, events: EncoderEvents<'_>) -> Vec<u32> {
        let outputs = self.model.encode_events(&Threads::new(threads), &ScratchPool::new(), events, &masked());
        bits(&outputs.expect("outputs")[0].values)
    }

    fn expected(&self) -> Vec<u32> {
        fn one((name, array): &(String, Array)) -> EncoderInput<'_> {
            let values = match &array.numbers {
                Numbers::F32(values) => InputValues::F32(values),
                Numbers::Bool(values) => InputValues::Bool(values),
                other => panic!("{other:?}"),
            };
            EncoderInput { name, shape: &array.shape, values }
        }
        let inputs: Vec<EncoderInput<'_>> = self.padded.iter().map(one).collect();
        let whole = self.model.encode(&Threads::new(1), &inputs, &EncodeOptions::default()).expect("outputs");
        let cut = self.model.encode(&Threads::new(1), &inputs, &masked()).expect("outputs");
        assert_eq!(bits(&whole[0].values), bits(&cut[0].values));
        bits(&cut[0].values)
    }
}

pub(super) fn masked() -> EncodeOptions {
    EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() }
}

fn bits(values: &OutputValues) -> Vec<u32> {
    let OutputValues::F32(values) = values else { panic!("single precision") };
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn ragged_events_have_the_bits_of_padded_ones() {
    for name in ["part", "part3"] {
        let jets = Jets::of(name);
        let expected = jets.expected();
        let widths = ["x", "v"].map(|input| {
            let array = &jets.padded.iter().find(|(name, _)| name == input).expect("an input").1;
            array.shape[1]
        });
        let offsets = jets.offsets(0);
        let rows = [jets.rows("x", widths[0]), jets.rows("v", widths[1])];
        let of_rows = |index: usize| Column::of_rows(InputValues::F32(&rows[index]), widths[index]);
        let [x, v] = [of_rows(0), of_rows(1)];
        let ragged = |name, columns, offsets| RaggedInput { name, offsets, columns };
        let both = [ragged("x", &x[..], Offsets::I64(&offsets)), ragged("v", &v[..], Offsets::I64(&offsets))];
        for threads in [1, 3] {
            let found = jets.encode(threads, EncoderEvents { dense: &[], ragged: &both });
            assert_eq!(found, expected, "{name}: rows, {threads} threads");
        }
        // Columns of their own, in double precision, and offsets that do not begin at 0.
        let before = [99.0; 7];
        let column = |column| {
            let values = jets.column("v", column).into_iter().map(f64::from);
            before.into_iter().chain(values).collect::<Vec<f64>>()
        };
        let columns: Vec<Vec<f64>> = (0..widths[1]).map(column).collect();
        let v: Vec<Column<'_>> = columns.iter().map(|values| Column::contiguous(InputValues::F64(values))).collect();
        let shifted: Vec<i32> = jets.offsets(7).iter().map(|&offset| offset as i32).collect();
        let mask = vec![true; rows[0].len() / widths[0]];
        let mask = [Column::contiguous(InputValues::Bool(&mask))];
        let mixed = [
            ragged("mask", &mask[..], Offsets::I64(&offsets)),
            ragged("v", &v[..], Offsets::I32(&shifted)),
            ragged("x", &x[..], Offsets::I64(&offsets)),
        ];
        assert_eq!(jets.encode(1, EncoderEvents { dense: &[], ragged: &mixed }), expected, "{name}: columns");
    }
}

#[test]
fn a_part_of_the_events_has_the_bits_of_all() {
    let jets = Jets::of("part");
    let (expected, offsets) = (jets.expected(), jets.offsets(0));
    let rows = [jets.rows("x", 5), jets.rows("v", 4)];
    let [x, v] = [Column::of_rows(InputValues::F32(&rows[0]), 5), Column::of_rows(InputValues::F32(&rows[1]), 4)];
    let (threads, scratches, per_event) = (Threads::new(1), ScratchPool::new(), expected.len() / jets.lengths.len());
    for event in 0..jets.lengths.len() {
        let offsets = Offsets::I64(&offsets[event..event + 2]);
        let ragged = [RaggedInput { name: "x", offsets, columns: &x }, RaggedInput { name: "v", offsets, columns: &v }];
        let events = EncoderEvents { dense: &[], ragged: &ragged };
        let outputs = jets.model.encode_events(&threads, &scratches, events, &masked()).expect("outputs");
        assert_eq!(bits(&outputs[0].values), expected[event * per_event..][..per_event], "event {event}");
    }
    let none = Offsets::I64(&[0]);
    let ragged =
        [RaggedInput { name: "x", offsets: none, columns: &x }, RaggedInput { name: "v", offsets: none, columns: &v }];
    let events = EncoderEvents { dense: &[], ragged: &ragged };
    let outputs = jets.model.encode_events(&threads, &scratches, events, &masked()).expect("outputs");
    assert_eq!(outputs[0].shape[0], 0);
}

#[test]
fn what_does_not_fit_is_refused() {
    let jets = Jets::of("part");
    let rows = [jets.rows("x", 5), jets.rows("v", 4)];
    let n_particles = rows[1].len() / 4;
    let [x, v] = [Column::of_rows(InputValues::F32(&rows[0]), 5), Column::of_rows(InputValues::F32(&rows[1]), 4)];
    let offsets = jets.offsets(0);
    let refused = |ragged: &[RaggedInput<'_>], dense: &[EncoderInput<'_>], options: &EncodeOptions| {
        let events = EncoderEvents { dense, ragged };
        let found = jets.model.encode_events(&Threads::new(1), &ScratchPool::new(), events, options);
        found.expect_err("an error").to_string()
    };
    let said = |v_columns: &[Column<'_>], v_offsets: &[i64], expected: &str| {
        let x = RaggedInput { name: "x", offsets: Offsets::I64(&offsets), columns: &x };
        let v = RaggedInput { name: "v", offsets: Offsets::I64(v_offsets), columns: v_columns };
        let said = refused(&[x, v], &[], &masked());
        assert!(said.contains(expected), "{said}");
    };
    let with = |place: usize, offset: i64| {
        let mut offsets = offsets.clone();
        offsets[place] = offset;
        offsets
    };
    said(&v[..3], &offsets, "input `v`: each particle has 3 numbers, and the model declares [batch, 4, particles]");
    said(&v, &[], "input `v`: it has no offsets");
    said(&v, &with(0, -1), "input `v`: offset 0 is -1, and must be at least 0");
    said(&v, &with(3, 0), "input `v`: offset 3 is 0, and must be at least");
    said(
        &v,
        &with(offsets.len() - 1, i64::MAX),
        &format!("input `v`: it has {n_particles} particles, and its offsets"),
    );
    said(&v, &offsets[..3], "input `v`: it has 2 events, and other inputs have 12");
    said(&v, &with(1, offsets[1] - 1), "input `v`: event 0 has");
    said(&v.iter().map(|column| Column { step: 0, ..*column }).collect::<Vec<_>>(), &offsets, "input `v`: it has 0");
    said(&v.iter().map(|column| Column { first: usize::MAX, ..*column }).collect::<Vec<_>>(), &offsets, "it has 0");
    let integers = [1; 4];
    said(&[Column::contiguous(InputValues::I64(&integers)); 4], &offsets, "input `v`: it must be made of numbers");
    let ragged = |name, columns| RaggedInput { name, offsets: Offsets::I64(&offsets), columns };
    let [x, v] = [ragged("x", &x[..]), ragged("v", &v[..])];
    assert!(refused(&[x, v, x], &[], &masked()).contains("input `x`: it is given more than once"));
    assert!(refused(&[x], &[], &masked()).contains("input `v`: it is not given"));
    assert!(refused(&[x, v], &[], &EncodeOptions::default()).contains("input `mask`: it is not given"));
    let zeros = vec![0.0_f32; 12 * 4 * 20];
    let dense = EncoderInput { name: "v", shape: &[12, 4, 20], values: InputValues::F32(&zeros) };
    assert!(refused(&[x], &[dense], &masked()).contains("input `v`: it has an axis of particles, and must be ragged"));
}

#[test]
fn padded_inputs_of_different_sizes_and_without_numbers_are_refused() {
    let jets = Jets::of("part");
    let cases = [
        ("v", vec![1, 4, 5], "input `v`: its axis of particles has the size 5, and that of other inputs 20"),
        ("mask", vec![1, 1, 40], "input `mask`: its axis of particles has the size 40, and that of other inputs 20"),
        // Memory for the events would be more than any machine has.
        ("x", vec![1 << 50, 5, 0], "input `x`: it has 1125899906842624 events, and no numbers"),
    ];
    for (name, shape, message) in cases {
        let shape_of = |other: &str, columns: usize| if other == name { shape.clone() } else { vec![1, columns, 20] };
        let shapes = [shape_of("x", 5), shape_of("v", 4), shape_of("mask", 1)];
        let [x, v, mask] = shapes.each_ref().map(|shape| shape.iter().product::<usize>());
        let (x, v, mask) = (vec![1.0; x], vec![1.0; v], vec![true; mask]);
        let values = [InputValues::F32(&x), InputValues::F32(&v), InputValues::Bool(&mask)];
        let inputs: Vec<EncoderInput<'_>> = (["x", "v", "mask"].into_iter().zip(&shapes).zip(values))
            .map(|((name, shape), values)| EncoderInput { name, shape, values })
            .collect();
        let found = jets.model.encode(&Threads::new(1), &inputs, &masked());
        assert_eq!(found.expect_err("an error").to_string(), message);
    }
}

#[test]
fn sequences_without_a_mask_are_computed_by_length() {
    let path = folder().join("text17.onnx");
    let model = Encoder::open(path).expect("a model");
    let options = EncodeOptions { mask: Some("mask".into()), ..EncodeOptions::default() };
    let ids: Vec<i64> = (0..13).map(|id| id * 7 % 30).collect();
    let offsets = [0, 3, 4, 9, 13];
    let columns = [Column::contiguous(InputValues::I64(&ids))];
    let ragged = RaggedInput { name: "ids", offsets: Offsets::U32(&offsets), columns: &columns };
    let mask = [true; 13];
    let all = [Column::contiguous(InputValues::Bool(&mask))];
    let mask = RaggedInput { name: "mask", offsets: Offsets::U32(&offsets), columns: &all };
    let run = |ragged: &[RaggedInput<'_>], options: &EncodeOptions| {
        let events = EncoderEvents { dense: &[], ragged };
        let outputs = model.encode_events(&Threads::new(1), &ScratchPool::new(), events, options);
        bits(&outputs.expect("outputs")[0].values)
    };
    let together = run(&[ragged], &options);
    // Without the name of the mask nothing is padded.
    assert_eq!(run(&[ragged, mask], &EncodeOptions::default()), together);
    let single: Vec<u32> = offsets
        .windows(2)
        .flat_map(|places| {
            let ids = &ids[places[0] as usize..places[1] as usize];
            let shape = [1, ids.len()];
            let set = vec![true; ids.len()];
            let inputs = [
                EncoderInput { name: "ids", shape: &shape, values: InputValues::I64(ids) },
                EncoderInput { name: "mask", shape: &shape, values: InputValues::Bool(&set) },
            ];
            bits(&model.run(&mut torchless::encoder::EncoderScratch::new(), &inputs).expect("outputs")[0].values)
        })
        .collect();
    assert_eq!(single, together);
}

#[test]
fn the_command_reads_ragged_arrays() {
    let jets = Jets::of("part");
    let folder = fresh_folder("ragged-jets");
    let offsets: Vec<u8> = jets.offsets(0).iter().flat_map(|&offset| (offset as i32).to_le_bytes()).collect();
    let n_particles = jets.lengths.iter().sum::<usize>();
    let write = |name: &str, offsets_type: &str| {
        let mut archive = zip::ZipWriter::new(std::fs::File::create(folder.join(name)).expect("a file"));
        for (input, width) in [("x", 5), ("v", 4)] {
            let numbers: Vec<u8> = jets.rows(input, width).iter().flat_map(|value| value.to_le_bytes()).collect();
            let shape = format!("{}", jets.lengths.len() + 1);
            let arrays = [
                (format!("{input}.npy"), npy("<f4", &format!("{n_particles}, {width}"), &numbers)),
                (format!("{input}.offsets.npy"), npy(offsets_type, &format!("{shape},"), &offsets)),
            ];
            for (name, bytes) in arrays {
                archive.start_file(name, zip::write::SimpleFileOptions::default()).expect("an archive");
                std::io::Write::write_all(&mut archive, &bytes).expect("an archive");
            }
        }
        archive.finish().expect("an archive");
    };
    write("jets.npz", "<i4");
    write("floats.npz", "<f4");
    let model = super::models::folder().join("part.onnx");
    let encode = |inputs: &std::path::Path| {
        let output = folder.join("logits.npy");
        let mut command = std::process::Command::new(program());
        command.arg("encode").arg(&model).arg("--inputs").arg(inputs).args(["--mask", "mask"]);
        let done = command.arg("--output").arg(&output).output().expect("the command");
        (std::fs::read(output).unwrap_or_default(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (padded, _) = encode(&super::models::folder().join("part.npz"));
    let (ragged, said) = encode(&folder.join("jets.npz"));
    assert!(said.starts_with("12 events"), "{said}");
    assert!(padded.len() > 12 * 3 * 4 && ragged == padded, "the bytes differ");
    let (_, said) = encode(&folder.join("floats.npz"));
    assert!(said.contains("input `x.offsets`: it must be made of integers in one axis"), "{said}");
}
