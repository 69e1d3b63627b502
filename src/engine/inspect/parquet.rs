//! A table as a Parquet file, written one row group at a time and renamed into place when complete.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Value;

use history::error::{Error, ErrorKind, Result};

/// Maximum rows of a group, and bytes of their texts: a group is held in memory until it is written.
const ROWS: usize = 20_000;
const BYTES: usize = 4 << 20;

/// The type of a column; any cell may be null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Int,
    /// Milliseconds since 1970, UTC.
    Time,
    Bool,
    Text,
}

pub(crate) type Columns = &'static [(&'static str, ColumnType)];

pub(crate) struct Table {
    path: PathBuf,
    /// Temporary file in the same directory.
    beside: PathBuf,
    columns: Columns,
    /// `None` once finished.
    writer: Option<SerializedFileWriter<fs::File>>,
    rows: Vec<Vec<Value>>,
    bytes: usize,
    written: u64,
}

impl Table {
    pub(crate) fn create(path: &Path, columns: Columns) -> Result<Self> {
        let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let beside = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
        let file = crate::files::new_file(&beside).map_err(|error| failed(path).because(error))?;
        let schema = parse_message_type(&schema(columns)).map_err(|error| failed(path).because(error))?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
            .map_err(|error| failed(path).because(error))?;
        let path = path.to_owned();
        Ok(Self { path, beside, columns, writer: Some(writer), rows: Vec::new(), bytes: 0, written: 0 })
    }

    /// Adds a row. Cells are looked up by column name in `row`, then in `known`, which several rows share.
    pub(crate) fn push(&mut self, known: &Value, row: &Value) -> Result<()> {
        let cell = |name| row.get(name).or_else(|| known.get(name)).cloned().unwrap_or_default();
        let row: Vec<Value> = self.columns.iter().map(|(name, _)| cell(*name)).collect();
        self.bytes += row.iter().map(|it| it.as_str().map_or(8, str::len)).sum::<usize>();
        self.rows.push(row);
        if self.rows.len() >= ROWS || self.bytes >= BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.rows.is_empty()) else { return Ok(()) };
        write(writer, self.columns, &self.rows).map_err(|error| failed(&self.path).because(error))?;
        self.written += self.rows.len() as u64;
        self.rows.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Renames the file into place; returns its number of rows.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.flush()?;
        let Some(mut writer) = self.writer.take() else { return Ok(self.written) };
        let failed = || failed(&self.path);
        writer.finish().map_err(|error| failed().because(error))?;
        let put = || {
            writer.inner().sync_all()?;
            fs::rename(&self.beside, &self.path)
        };
        put().map_err(|error| failed().because(error))?;
        Ok(self.written)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // After `finish` the temporary file no longer exists.
        let _ = fs::remove_file(&self.beside);
    }
}

fn failed(path: &Path) -> Error {
    Error::new(ErrorKind::Io, "writing a table; the existing one is unchanged").at_path(path)
}

fn schema(columns: Columns) -> String {
    let column = |(name, kind): &(&str, ColumnType)| match kind {
        ColumnType::Int => format!("OPTIONAL INT64 {name};"),
        ColumnType::Time => format!("OPTIONAL INT64 {name} (TIMESTAMP(MILLIS,true));"),
        ColumnType::Bool => format!("OPTIONAL BOOLEAN {name};"),
        ColumnType::Text => format!("OPTIONAL BYTE_ARRAY {name} (STRING);"),
    };
    format!("message epitome {{ {} }}", columns.iter().map(column).collect::<String>())
}

fn write(
    writer: &mut SerializedFileWriter<fs::File>,
    columns: Columns,
    rows: &[Vec<Value>],
) -> ParquetResult<()> {
    let mut group = writer.next_row_group()?;
    for (number, (_, kind)) in columns.iter().enumerate() {
        let Some(mut column) = group.next_column()? else { break };
        let cells = rows.iter().filter_map(|it| it.get(number));
        let to = &mut column;
        match kind {
            ColumnType::Int | ColumnType::Time => put::<Int64Type>(to, cells, Value::as_i64),
            ColumnType::Bool => put::<BoolType>(to, cells, Value::as_bool),
            ColumnType::Text => put::<ByteArrayType>(to, cells, |it| it.as_str().map(ByteArray::from)),
        }?;
        column.close()?;
    }
    group.close().map(drop)
}

/// Writes the cells of one column in one group.
fn put<'a, T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = &'a Value>,
    value: impl Fn(&Value) -> Option<T::T>,
) -> ParquetResult<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        let value = value(cell);
        levels.push(i16::from(value.is_some()));
        values.extend(value);
    }
    column.typed::<T>().write_batch(&values, Some(&levels), None).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::RowAccessor as _;

    const COLUMNS: Columns =
        &[("a", ColumnType::Int), ("b", ColumnType::Time), ("c", ColumnType::Bool), ("d", ColumnType::Text)];

    #[test]
    fn a_table_is_read_back_over_several_groups_and_is_there_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let mut table = Table::create(&path, COLUMNS).unwrap();
        for number in 0..ROWS as i64 + 5 {
            let text = (number % 2 == 0).then(|| format!("line {number} ü"));
            let row = serde_json::json!({"b": number * 1_000, "c": true, "d": text});
            table.push(&serde_json::json!({"a": number}), &row).unwrap();
        }
        table.push(&Value::Null, &Value::Null).unwrap();
        assert!(!path.exists());
        assert_eq!(table.finish().unwrap(), ROWS as u64 + 6);
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["t.parquet"]);
        let read = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
        assert_eq!(read.metadata().num_row_groups(), 2);
        let rows: Vec<_> = read.get_row_iter(None).unwrap().map(|it| it.unwrap()).collect();
        assert_eq!(rows.len(), ROWS + 6);
        assert_eq!(rows[ROWS].get_long(0).unwrap(), ROWS as i64);
        assert_eq!(rows[ROWS].get_string(3).unwrap(), &format!("line {ROWS} ü"));
        assert!(rows[1].get_string(3).is_err() && rows[ROWS + 5].get_long(0).is_err());
        // A table that is dropped unfinished leaves the old file in place.
        let before = fs::read(&path).unwrap();
        let mut again = Table::create(&path, COLUMNS).unwrap();
        again.push(&Value::Null, &Value::Null).unwrap();
        drop(again);
        assert!(fs::read(&path).unwrap() == before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
