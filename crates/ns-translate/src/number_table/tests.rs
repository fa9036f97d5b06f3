//! Tests that every format gives the same table, and that damage is an error with its place.

use super::{NumberTable, NumberTableError, read_named_tables, read_number_table};

fn npy(descr: &str, is_fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let header = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let len = u16::try_from(header.len()).expect("a short header").to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), data].concat()
}

/// Archives an array under `name`, as the format says.
fn npz(names: &[&str], array: &[u8], is_deflated: bool) -> Vec<u8> {
    use std::io::Write as _;
    let crc = crc32fast::hash(array).to_le_bytes();
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(array).expect("writing to memory");
    let packed = if is_deflated { encoder.finish().expect("writing to memory") } else { array.to_vec() };
    let [n_packed, n_unpacked] = [packed.len(), array.len()].map(|n| u32::try_from(n).expect("small").to_le_bytes());
    let method = [if is_deflated { 8 } else { 0 }, 0];
    let (mut members, mut directory) = (Vec::new(), Vec::new());
    for name in names {
        let start = u32::try_from(members.len()).expect("small").to_le_bytes();
        let name_len = [u8::try_from(name.len()).expect("short"), 0];
        let common = [&[0; 2], &method[..], &[0; 4], &crc, &n_packed, &n_unpacked, &name_len].concat();
        members.extend([b"PK\x03\x04\x14\x00", &common[..], &[0, 0], name.as_bytes(), &packed].concat());
        directory.extend([b"PK\x01\x02\x14\x00\x14\x00", &common[..], &[0; 12], &start, name.as_bytes()].concat());
    }
    let [at, len] = [members.len(), directory.len()].map(|n| u32::try_from(n).expect("small").to_le_bytes());
    let n = [u8::try_from(names.len()).expect("few"), 0];
    [members, directory, [b"PK\x05\x06\0\0\0\0", &n[..], &n, &len, &at, &[0, 0]].concat()].concat()
}

fn table() -> NumberTable {
    NumberTable { values: vec![57.0, 63.0, 1.0, 2.0, 3.0, 4.0], n_rows: 2, n_columns: 3 }
}

fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn every_format_gives_the_same_table() {
    let plain = npy("'<f8'", false, "(2, 3)", &doubles(&table().values));
    let big: Vec<u8> = table().values.iter().flat_map(|value| (*value as f32).to_be_bytes()).collect();
    let bytes: Vec<u8> = table().values.iter().map(|value| *value as u8).collect();
    let words: Vec<u8> = table().values.iter().flat_map(|value| (*value as i64).to_le_bytes()).collect();
    for document in [
        plain.clone(),
        npy("'<f8'", true, "(2, 3)", &doubles(&[57.0, 2.0, 63.0, 3.0, 1.0, 4.0])),
        npy("'>f4'", false, "(2, 3)", &big),
        npy("'|u1'", false, "(2, 3)", &bytes),
        npy("'<i8'", false, "(2, 3)", &words),
        npz(&["data.npy"], &plain, false),
        npz(&["data.npy"], &plain, true),
        b"57,63,1\n2,3,4".to_vec(),
        b"# two data sets\nSR_0 SR_1 CR\n57 63 1\r\n\n2\t3.0 4e0\n".to_vec(),
        b"[[57, 63, 1.0], [2, 3, 4]]".to_vec(),
    ] {
        assert_eq!(read_number_table(&document), Ok(table()), "{}", String::from_utf8_lossy(&document));
    }
    let negative = npy("'<i2'", false, "(1, 1)", &(-3_i16).to_le_bytes());
    assert_eq!(read_number_table(&negative).expect("a table").values, [-3.0]);
}

#[test]
fn what_is_not_a_table_is_explained() {
    let plain = npy("'<f8'", false, "(2, 3)", &doubles(&table().values));
    let said = |document: &[u8]| {
        let error = read_number_table(document).expect_err("not a table");
        format!("{error} | {}", error.hint().unwrap_or_default())
    };
    let cases: [(&[u8], &str); 12] = [
        (&npy("'<f8'", false, "(3,)", &doubles(&[1.0; 3])), "the array has 1 dimension instead of 2 | a single row"),
        (&npy("'<f8'", false, "(1, 1, 1)", &doubles(&[1.0])), "the array has 3 dimensions instead of 2 | "),
        (&npy("'<c16'", false, "(1, 1)", &[0; 16]), "the array has entries of the type `<c16`, which are not numbers"),
        (&npy("[('a', '<f8')]", false, "(1,)", &[0; 8]), "the array has entries of the type `[('a', '<f8')]`, which"),
        (&plain[..plain.len() - 1], "the array has 47 bytes instead of 48 | "),
        (&npy("'<f8'", false, "(9999999999, 9999999999)", &[]), "damaged NumPy file: its shape is too large"),
        (&plain[..9], "damaged NumPy file: its header is cut off"),
        (&npz(&["a.npy", "b.npy"], &plain, true), "the archive has 2 arrays instead of 1 | save one of them alone"),
        (b"57 63\n51 many\n", "`many` in line 2, column 2, is not a number | "),
        (b"57 63\n51\n", "line 2 has 1 number instead of 2 | "),
        (b"[[1, 2], [3]]", "expected 2 entries, found 1 at `/1` (line 1, column 10) | "),
        (b"[[1, NaN]]", "`NaN` is not"),
    ];
    for (document, expected) in cases {
        assert!(said(document).starts_with(expected), "{} is not {expected}", said(document));
    }
}

#[test]
fn damaged_bytes_are_errors_or_other_numbers_and_never_a_panic() {
    let plain = npy("'<f8'", false, "(2, 3)", &doubles(&table().values));
    let packed = npz(&["data.npy"], &plain, true);
    let mut n_refused = 0;
    for document in [&plain, &packed] {
        for end in 0..document.len() {
            // The first letter alone is a line of names.
            let found = read_number_table(&document[..end]);
            assert!(found.is_err() || found == Ok(NumberTable::default()), "{end}");
        }
        for at in 0..document.len() {
            for change in [0x01, 0x10, 0x80, 0xff] {
                let mut damaged = document.clone();
                damaged[at] ^= change;
                n_refused += usize::from(read_number_table(&damaged).is_err());
            }
        }
    }
    assert!(n_refused > packed.len(), "{n_refused}");
    let wrong_checksum = NumberTableError::Damaged { reason: "a member of the archive does not match its checksum" };
    let mut stored = npz(&["data.npy"], &plain, false);
    let last = stored.windows(8).rposition(|bytes| bytes == 4.0_f64.to_le_bytes()).expect("the last number");
    stored[last + 7] ^= 1;
    assert_eq!(read_number_table(&stored), Err(wrong_checksum));
}

#[test]
fn archives_and_objects_have_tables_by_name() {
    let plain = npy("'<f8'", false, "(2, 3)", &doubles(&table().values));
    let both = vec![("SR".to_owned(), table()), ("CR.uncertainty".to_owned(), table())];
    for packed in [false, true] {
        assert_eq!(read_named_tables(&npz(&["SR.npy", "CR.uncertainty.npy"], &plain, packed)), Ok(both.clone()));
    }
    let text = br#"{"SR": [[57, 63, 1], [2, 3, 4]], "CR.uncertainty": [[57, 63, 1.0], [2, 3, 4e0]]}"#;
    assert_eq!(read_named_tables(text), Ok(both));
}

#[test]
fn tables_without_names_and_with_the_same_name_are_refused() {
    let plain = npy("'<f8'", false, "(2, 3)", &doubles(&table().values));
    assert_eq!(read_named_tables(&plain), Err(NumberTableError::Unnamed));
    let repeated = NumberTableError::Repeated { name: "SR".to_owned() };
    assert_eq!(read_named_tables(&npz(&["SR.npy", "SR.npy"], &plain, false)), Err(repeated.clone()));
    assert_eq!(read_named_tables(br#"{"SR": [[1]], "SR": [[1]]}"#), Err(repeated));
    let row = npy("'<f8'", false, "(6,)", &doubles(&table().values));
    let error = read_named_tables(&npz(&["SR.npy"], &row, false)).unwrap_err();
    assert_eq!(error.to_string(), "the array `SR`: the array has 1 dimension instead of 2");
    assert!(error.hint().unwrap().contains("array[None]"));
    let error = read_named_tables(br#"{"SR": [[1, 2], [3]]}"#).unwrap_err();
    assert_eq!(error.place().map(|place| place.pointer.as_str()), Some("/SR/1"));
}
