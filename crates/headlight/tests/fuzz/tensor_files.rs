//! Safetensors files for parsers.

/// A file of this header and, after it, `bytes` zeros.
pub fn file(header: &str, bytes: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.bytes());
    file.resize(file.len() + bytes, 0);
    file
}

/// Zeros as tensors of these names, types and shapes.
pub fn tensor_file(tensors: &[(&str, &str, &[usize])]) -> Vec<u8> {
    let mut end = 0;
    let mut entry = |&(name, dtype, shape): &(&str, &str, &[usize])| {
        let bits: usize = dtype
            .trim_start_matches(char::is_alphabetic)
            .parse()
            .unwrap_or(8);
        let start = end;
        end += shape.iter().product::<usize>() * bits / 8;
        format!(
            r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#
        )
    };
    let entries: Vec<String> = tensors.iter().map(&mut entry).collect();
    file(&format!("{{{}}}", entries.join(",")), end)
}
