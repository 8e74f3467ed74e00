//! Units and meanings of a Parquet file's columns. Parquet itself has no metadata of columns, but pyarrow, polars, R's
//! arrow and other readers use `ARROW:schema` from the file's metadata: an Arrow schema whose fields have metadata.
//!
//! Written with `flatbuffers` alone; the arrow crates would triple the build. The numbers below are those of
//! Arrow's `Schema.fbs` and `Message.fbs`. `python/tests/read_parquet.py` reads them with pyarrow.

use crate::variables::Explained;
use base64::Engine as _;
use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, VOffsetT, WIPOffset};
use parquet::file::metadata::KeyValue;

/// Arrow types in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// UTF-8 strings.
    Text,
    /// Whole numbers of 64 bits.
    Whole,
    /// Numbers in double precision, null for NaN.
    Number,
}

/// The file's metadata that explains its columns.
pub fn key_value<'a>(
    columns: impl IntoIterator<Item = (&'a str, ColumnType)>,
    explain: impl Fn(&str) -> Explained,
) -> KeyValue {
    let message = message(columns.into_iter().map(|(name, kind)| (name, kind, explain(name))));
    // As in an Arrow stream: a mark, the length, the message.
    let mut bytes = vec![0xff; 4];
    bytes.extend((message.len() as u32).to_le_bytes());
    bytes.extend(message);
    let text = base64::engine::general_purpose::STANDARD.encode(bytes);
    KeyValue::new("ARROW:schema".to_string(), text)
}

/// Position of a table's field number `n` in its vtable.
const fn slot(n: VOffsetT) -> VOffsetT {
    4 + 2 * n
}

/// Message: version 0, kind of header 1, header 2, length of the body 3.
fn message<'a>(columns: impl Iterator<Item = (&'a str, ColumnType, Explained)>) -> Vec<u8> {
    const METADATA_V5: i16 = 4;
    const HEADER_IS_SCHEMA: u8 = 1;
    let mut b = FlatBufferBuilder::new();
    let fields: Vec<_> =
        columns.map(|(name, kind, explained)| field(&mut b, name, kind, explained)).collect();
    let fields = b.create_vector(&fields);
    // Schema: byte order 0 (default: little), fields 1.
    let schema = b.start_table();
    b.push_slot_always(slot(1), fields);
    let schema = b.end_table(schema);
    let message = b.start_table();
    b.push_slot_always(slot(3), 0i64);
    b.push_slot_always(slot(2), schema);
    b.push_slot_always(slot(0), METADATA_V5);
    b.push_slot_always(slot(1), HEADER_IS_SCHEMA);
    let message = b.end_table(message);
    b.finish_minimal(message);
    let mut bytes = b.finished_data().to_vec();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Field: name 0, whether it may be null 1, kind of type 2, type 3, children 5, metadata 6.
fn field(
    b: &mut FlatBufferBuilder,
    name: &str,
    kind: ColumnType,
    explained: Explained,
) -> WIPOffset<TableFinishedWIPOffset> {
    let metadata: Vec<_> = explained
        .into_iter()
        .flat_map(|(unit, meaning)| [("unit", unit.to_string()), ("meaning", meaning)])
        .filter(|(_, value)| !value.is_empty())
        .map(|(key, value)| pair(b, key, &value))
        .collect();
    let metadata = b.create_vector(&metadata);
    let children = b.create_vector::<WIPOffset<TableFinishedWIPOffset>>(&[]);
    let label = b.create_string(name);
    let shape = b.start_table();
    let type_number: u8 = match kind {
        ColumnType::Text => 5,
        ColumnType::Whole => {
            b.push_slot_always(slot(0), 64i32);
            b.push_slot_always(slot(1), true);
            2
        }
        ColumnType::Number => {
            const DOUBLE: i16 = 2;
            b.push_slot_always(slot(0), DOUBLE);
            3
        }
    };
    let shape = b.end_table(shape);
    let field = b.start_table();
    b.push_slot_always(slot(0), label);
    b.push_slot_always(slot(3), shape);
    b.push_slot_always(slot(5), children);
    b.push_slot_always(slot(6), metadata);
    b.push_slot_always(slot(1), kind == ColumnType::Number);
    b.push_slot_always(slot(2), type_number);
    b.end_table(field)
}

/// KeyValue: key 0, value 1.
fn pair(b: &mut FlatBufferBuilder, key: &str, value: &str) -> WIPOffset<TableFinishedWIPOffset> {
    let key = b.create_string(key);
    let value = b.create_string(value);
    let pair = b.start_table();
    b.push_slot_always(slot(0), key);
    b.push_slot_always(slot(1), value);
    b.end_table(pair)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::sample;
    use crate::variables::{of_measures, of_series};

    /// Some names are a variable's and a measure's.
    #[test]
    fn series_and_measures_have_their_own_explanations() {
        let column = [("throughput_bps", ColumnType::Number)];
        let outcome = sample::outcome(&["reno"], 1, 1.0, 0.5);
        let series = key_value(column, of_series(&outcome));
        let measures = key_value(column, of_measures);
        assert!(series.value.is_some());
        assert_ne!(series.value, measures.value);
    }
}
