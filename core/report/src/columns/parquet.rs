//! Tables as Parquet, with the parquet crate's column writer; its arrow layer would triple the build.

use super::{Columns, Values};
use crate::arrow_schema::{self, ColumnType};
use crate::variables::Explained;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::io::Write;
use std::sync::Arc;

impl Columns {
    /// As Parquet, in one row group; `about` goes into the file's key-value metadata, and what `explain` says of a
    /// column into its field of Arrow's schema. NaN is stored as null.
    ///
    /// # Errors
    /// An error of the file system or the parquet crate.
    pub fn parquet(
        &self,
        sink: &mut (impl Write + Send),
        about: &[(&str, String)],
        explain: impl Fn(&str) -> Explained,
    ) -> Result<()> {
        let fields = self.0.iter().map(|(name, values)| {
            let (physical, repetition) = match values {
                Values::Text(_) => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
                Values::Whole(_) => (Physical::INT64, Repetition::REQUIRED),
                Values::Number(_) => (Physical::DOUBLE, Repetition::OPTIONAL),
            };
            let text = matches!(values, Values::Text(_)).then_some(LogicalType::String);
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(repetition)
                .with_logical_type(text)
                .build()?;
            Ok(Arc::new(field))
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder("table").with_fields(fields).build()?);
        let kinds = self.0.iter().map(|(name, values)| {
            let kind = match values {
                Values::Text(_) => ColumnType::Text,
                Values::Whole(_) => ColumnType::Whole,
                Values::Number(_) => ColumnType::Number,
            };
            (name.as_str(), kind)
        });
        let about = about.iter().map(|(k, v)| KeyValue::new((*k).to_string(), v.clone()));
        let about = about.chain([arrow_schema::key_value(kinds, explain)]).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("narrows {}", crate::VERSION))
            .set_key_value_metadata(Some(about))
            .build();
        let mut writer = SerializedFileWriter::new(sink, schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (_, values) in &self.0 {
            let Some(mut next) = group.next_column()? else { break };
            match values {
                Values::Text(x) => {
                    let x: Vec<ByteArray> = x.iter().map(|t| ByteArray::from(t.as_str())).collect();
                    next.typed::<ByteArrayType>().write_batch(&x, None, None)?;
                }
                Values::Whole(x) => {
                    let x: Vec<i64> = x.iter().map(|n| *n as i64).collect();
                    next.typed::<Int64Type>().write_batch(&x, None, None)?;
                }
                Values::Number(x) => {
                    // Definition level 1 means that a value is present; only those are written.
                    let levels: Vec<i16> = x.iter().map(|v| i16::from(v.is_finite())).collect();
                    let x: Vec<f64> = x.iter().copied().filter(|v| v.is_finite()).collect();
                    next.typed::<DoubleType>().write_batch(&x, Some(&levels), None)?;
                }
            }
            next.close()?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::table;
    use super::*;
    use crate::{html::sample, series};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn read_back(table: &Columns) -> SerializedFileReader<bytes::Bytes> {
        let mut file = Vec::new();
        table.parquet(&mut file, &[("narrows.seed", "1".into())], |_| None).unwrap();
        SerializedFileReader::new(bytes::Bytes::from(file)).unwrap()
    }

    /// A series, too: its columns are texts and numbers.
    #[test]
    fn parquet_reads_back() {
        let outcome = sample::outcome(&["reno", "veg'as \u{00fc}"], 2, 5.0, 0.1);
        for written in [table(), series::table(&outcome)] {
            let reader = read_back(&written);
            let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
            assert_eq!(rows.len(), written.rows());
            for (at, row) in rows.iter().enumerate() {
                for ((name, values), (found, field)) in written.0.iter().zip(row.get_column_iter())
                {
                    assert_eq!(name, found);
                    let expected = match values {
                        Values::Text(x) => Field::Str(x[at].clone()),
                        Values::Whole(x) => Field::Long(x[at] as i64),
                        Values::Number(x) if x[at].is_finite() => Field::Double(x[at]),
                        Values::Number(_) => Field::Null,
                    };
                    assert_eq!(*field, expected, "{name} in row {at}");
                }
            }
            let metadata = reader.metadata().file_metadata().key_value_metadata();
            assert!(metadata.into_iter().flatten().any(|kv| kv.key == "narrows.seed"));
        }
    }

    #[test]
    fn an_empty_outcome_is_a_valid_file() {
        let empty = sample::outcome(&[], 1, 1.0, 0.1);
        assert_eq!(read_back(&series::table(&empty)).metadata().file_metadata().num_rows(), 0);
    }
}
