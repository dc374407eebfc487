//! Reading files that may be anything.

use std::{fs::File, io::Read, path::Path};

use crate::{Error, ErrorKind};

/// The bytes of a file that may have `most` of them. What is no file (a pipe, a device) is not
/// read: it might not end.
///
/// # Errors
/// Names the file that is larger, no file, or cannot be read.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |error: std::io::Error| Error::io(path, "read", error);
    // Opening a pipe would already wait for its other end.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::of(
            ErrorKind::Denied,
            path.display(),
            "is not a file",
        ));
    }
    let size = metadata.len();
    if size > most {
        let message = format_args!("has {size} bytes, more than {most}");
        return Err(Error::of(ErrorKind::TooLarge, path.display(), message));
    }
    let mut bytes = Vec::with_capacity(size as usize);
    // It may grow meanwhile.
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_or_no_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_at_most(&path, 5).unwrap(), b"12345");
        let refusal = |path: &Path| read_at_most(path, 4).unwrap_err().to_string();
        assert!(refusal(&path).ends_with("has 5 bytes, more than 4"));
        assert!(refusal(folder.path()).ends_with("is not a file"));
        if cfg!(unix) {
            assert_eq!(refusal(Path::new("/dev/zero")), "/dev/zero: is not a file");
        }
    }
}
