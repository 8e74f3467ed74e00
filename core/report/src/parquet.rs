//! `series.parquet`: all time series of an outcome, for pandas, polars, DuckDB or R.
//!
//! One row per protocol, flow or link, and sample time; one column per variable, empty where a
//! variable does not apply:
//!
//! ```text
//! protocol  kind  name    group  time_s  cwnd  ssthresh  …  queue  drops
//! reno      flow  reno-0  reno   0.1     4.0             …
//! reno      link  1>2            0.1                     …  0      0
//! ```
//!
//! Rows this wide need no pivot, store each time once, and an empty column costs a few bytes. NaN is stored as null.
//! There is one row group per protocol, so readers can skip the others. Units and meanings of the columns are in
//! Arrow's schema (`pyarrow.parquet.read_schema`). The exact command, the first seed and the version are in the file's
//! key-value metadata.
//!
//! The file is written with the parquet crate's column writer; its arrow layer would triple the build.

use crate::arrow_schema::{self, ColumnType};
use crate::columns::{Columns, Values};
use crate::variables::of_series;
use narrows_lab::outcome::{Outcome, ProtocolOutcome};
use narrows_sim::SeriesTable;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::{io::Write, sync::Arc};

/// Writing failed with an error of the file system or the parquet crate.
pub type Error = parquet::errors::ParquetError;

/// The columns before the variables; those before `time_s` are texts.
const FIXED: [&str; 5] = ["protocol", "kind", "name", "group", "time_s"];

/// Writes all series of the outcome.
pub fn write(outcome: &Outcome, sink: impl Write + Send) -> Result<(), Error> {
    let variables = variables(outcome);
    let metadata = about(outcome).map(|(key, value)| KeyValue::new(key.to_string(), value));
    let texts = FIXED[..4].iter().map(|name| (*name, ColumnType::Text));
    let numbers = FIXED[4..].iter().chain(&variables).map(|name| (*name, ColumnType::Number));
    let metadata: Vec<KeyValue> = metadata
        .into_iter()
        .chain([arrow_schema::key_value(texts.chain(numbers), of_series(outcome))])
        .collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("narrows {}", crate::VERSION))
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut writer = SerializedFileWriter::new(sink, schema(&variables)?, Arc::new(properties))?;
    for result in outcome.results.iter().filter(|r| r.series.iter().any(|t| !t.time_s.is_empty())) {
        write_protocol(&mut writer, result, &variables)?;
    }
    writer.close()?;
    Ok(())
}

/// All series of the outcome as one table, its rows in the file's order.
pub fn series(outcome: &Outcome) -> Columns {
    let tables = || outcome.results.iter().flat_map(|r| r.series.iter().map(move |t| (r, t)));
    let text = |of: fn((&ProtocolOutcome, &SeriesTable)) -> String| {
        let repeated = tables().flat_map(|(r, t)| std::iter::repeat_n(of((r, t)), t.time_s.len()));
        Values::Text(repeated.collect())
    };
    let times = tables().flat_map(|(_, t)| t.time_s.iter().copied()).collect();
    let fixed: [Values; 5] = [
        text(|(r, _)| r.protocol.clone()),
        text(|(_, t)| t.kind.to_string()),
        text(|(_, t)| t.name.clone()),
        text(|(_, t)| t.group.clone()),
        Values::Number(times),
    ];
    let mut columns: Vec<_> = FIXED.iter().map(ToString::to_string).zip(fixed).collect();
    for variable in variables(outcome) {
        let values = tables().flat_map(|(_, t)| {
            let column = t.column(variable).unwrap_or(&[]);
            (0..t.time_s.len()).map(|row| column.get(row).copied().unwrap_or(f64::NAN))
        });
        columns.push((variable.to_string(), Values::Number(values.collect())));
    }
    Columns(columns)
}

/// Command, seed and version that reproduce the numbers, for a file's metadata.
pub fn about(outcome: &Outcome) -> [(&'static str, String); 4] {
    [
        ("narrows.command", outcome.command_line.clone()),
        ("narrows.seed", outcome.seed.to_string()),
        ("narrows.version", crate::VERSION.to_string()),
        ("narrows.link", outcome.link.clone()),
    ]
}

/// All variables, in the order in which they first occur.
fn variables(outcome: &Outcome) -> Vec<&'static str> {
    let mut found = Vec::new();
    for (name, _) in outcome.results.iter().flat_map(|r| &r.series).flat_map(|t| &t.columns) {
        if !found.contains(name) && !FIXED.contains(name) {
            found.push(*name);
        }
    }
    found
}

fn schema(variables: &[&str]) -> Result<Arc<Type>, Error> {
    let text = |name: &&str| {
        Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
            .with_logical_type(Some(LogicalType::String))
            .with_repetition(Repetition::REQUIRED)
            .build()
    };
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(repetition).build()
    };
    let mut fields = FIXED[..4].iter().map(text).collect::<Result<Vec<_>, _>>()?;
    fields.push(number("time_s", Repetition::REQUIRED)?);
    for name in variables {
        fields.push(number(name, Repetition::OPTIONAL)?);
    }
    let fields = fields.into_iter().map(Arc::new).collect();
    Ok(Arc::new(Type::group_type_builder("series").with_fields(fields).build()?))
}

/// One row group: all tables of a protocol, one after the other.
fn write_protocol<W: Write + Send>(
    writer: &mut SerializedFileWriter<W>,
    result: &ProtocolOutcome,
    variables: &[&str],
) -> Result<(), Error> {
    let mut group = writer.next_row_group()?;
    for column in 0..4 {
        let mut texts = Vec::new();
        for table in &result.series {
            let text = match column {
                0 => &result.protocol,
                1 => table.kind,
                2 => &table.name,
                _ => &table.group,
            };
            texts.extend(std::iter::repeat_n(ByteArray::from(text), table.time_s.len()));
        }
        let mut next = group.next_column()?.expect("the schema begins with four texts");
        next.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
        next.close()?;
    }

    let times: Vec<f64> = result.series.iter().flat_map(|t| &t.time_s).copied().collect();
    let mut next = group.next_column()?.expect("the schema has a time");
    next.typed::<DoubleType>().write_batch(&times, None, None)?;
    next.close()?;

    for variable in variables {
        // Definition level 1 means that a value is present; only those are in `values`.
        let mut values = Vec::new();
        let mut levels = Vec::with_capacity(times.len());
        for table in &result.series {
            let column = table.column(variable).unwrap_or(&[]);
            for row in 0..table.time_s.len() {
                let value = column.get(row).copied().filter(|v| v.is_finite());
                levels.push(i16::from(value.is_some()));
                values.extend(value);
            }
        }
        let mut next = group.next_column()?.expect("the schema has each variable");
        next.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
        next.close()?;
    }
    group.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::sample;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn written_table_is_read_back() {
        let mut outcome = sample::outcome(&["reno", "veg'as \u{00fc}"], 2, 5.0, 0.1);
        outcome.results[0].series[0].columns[0].1[7] = f64::INFINITY;
        let mut file = Vec::new();
        write(&outcome, &mut file).expect("memory takes everything");
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a parquet file");
        assert_eq!(reader.num_row_groups(), 2);

        let mut expected = Vec::new();
        for result in &outcome.results {
            for table in &result.series {
                for (row, time) in table.time_s.iter().enumerate() {
                    expected.push((result, table, row, *time));
                }
            }
        }
        let rows: Vec<_> =
            reader.get_row_iter(None).expect("rows").map(|r| r.expect("a row")).collect();
        assert_eq!(rows.len(), expected.len());
        for (row, (result, table, place, time)) in rows.iter().zip(expected) {
            for (name, field) in row.get_column_iter() {
                match (name.as_str(), field) {
                    ("protocol", Field::Str(text)) => assert_eq!(*text, result.protocol),
                    ("kind", Field::Str(text)) => assert_eq!(text, table.kind),
                    ("name", Field::Str(text)) => assert_eq!(*text, table.name),
                    ("group", Field::Str(text)) => assert_eq!(*text, table.group),
                    ("time_s", Field::Double(value)) => assert_eq!(*value, time),
                    (name, Field::Double(value)) => {
                        assert_eq!(Some(*value), table.column(name).map(|c| c[place]));
                    }
                    (name, Field::Null) => {
                        assert!(table.column(name).is_none_or(|c| !c[place].is_finite()));
                    }
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        let metadata = reader.metadata().file_metadata().key_value_metadata();
        assert!(metadata.into_iter().flatten().any(|kv| kv.key == "narrows.seed"));
    }

    #[test]
    fn an_empty_outcome_is_a_valid_file() {
        let mut file = Vec::new();
        write(&sample::outcome(&[], 1, 1.0, 0.1), &mut file).expect("memory takes everything");
        assert!(SerializedFileReader::new(bytes::Bytes::from(file)).is_ok());
    }
}
