//! Files written while training goes on: waiting for a disk is no work.

use std::{
    sync::mpsc::{SyncSender, sync_channel},
    thread::{self, JoinHandle},
};

use headlight_run::{Error, RunDirectory};

use crate::Stopped;

/// What is to be written.
type Job = Box<dyn FnOnce(&RunDirectory) -> Result<(), Error> + Send>;

/// Jobs that may wait, and so are held in memory.
const WAITING: usize = 4;

/// Writes into a run on a thread of its own, in the order in which it is told to. What was not
/// written yet when the process is killed belongs to steps after the newest checkpoint.
pub(crate) struct Writer {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Writer {
    pub fn new(run: &RunDirectory) -> Self {
        let (jobs, waiting) = sync_channel::<Job>(WAITING);
        let run = run.clone();
        // The first error ends it: what comes after might need what could not be written.
        let thread = thread::spawn(move || waiting.into_iter().try_for_each(|job| job(&run)));
        Self {
            jobs: Some(jobs),
            thread: Some(thread),
        }
    }

    /// Writes `job` when all before it are written.
    ///
    /// # Errors
    /// If one of those before it could not be.
    pub fn write(
        &mut self,
        job: impl FnOnce(&RunDirectory) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Stopped> {
        match self.jobs.as_ref().map(|jobs| jobs.send(Box::new(job))) {
            Some(Ok(())) => Ok(()),
            _ => self.end(),
        }
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// If something could not be.
    pub fn finish(mut self) -> Result<(), Stopped> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Stopped> {
        self.jobs = None;
        let thread = self.thread.take().ok_or(Stopped::Writer("has ended"))?;
        let written = thread.join().map_err(|_| Stopped::Writer("panicked"))?;
        Ok(written?)
    }
}

impl Drop for Writer {
    /// Setup that fails leaves what it has reached.
    fn drop(&mut self) {
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::{io, path::Path, sync::mpsc::channel};

    use headlight_run::{Config, ErrorKind, RunData};

    use super::*;

    fn run_in(directory: &Path) -> RunDirectory {
        let text = r#"
            task = { name = "repeat" }
            model = { n_layers = 1, n_heads = 1, d_model = 8, n_ctx = 64, feed_forward = "none" }
            train = { steps = 10, batch_size = 8, learning_rate = 1e-3 }
        "#;
        RunDirectory::create(
            &directory.join("run"),
            &Config::parse(text, "test", &[]).unwrap(),
            &RunData::default(),
            false,
        )
        .unwrap()
    }

    #[test]
    fn jobs_are_done_in_their_order_and_all_before_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let (done, log) = channel();
        let mut writer = Writer::new(&run_in(directory.path()));
        for job in 0..20 {
            let done = done.clone();
            writer
                .write(move |_| done.send(job).map_err(|error| Error::new("test", error)))
                .unwrap();
        }
        writer.finish().unwrap();
        assert_eq!(
            log.try_iter().collect::<Vec<_>>(),
            (0..20).collect::<Vec<_>>()
        );
    }

    fn full_disk() -> Error {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        Error::io(Path::new("run/metrics.jsonl"), "append", full)
    }

    #[test]
    fn a_job_that_panics_is_told_apart_from_a_file_that_cannot_be_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(&run_in(directory.path()));
        writer.write(|_| panic!("on purpose")).unwrap();
        let told = writer.finish().unwrap_err();
        assert!(matches!(told, Stopped::Writer("panicked")), "{told:?}");
    }

    #[test]
    fn the_first_error_is_told_and_nothing_is_written_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let (done, log) = channel();
        let mut writer = Writer::new(&run_in(directory.path()));
        writer.write(|_| Err(full_disk())).unwrap();
        let told = (0..10).find_map(|_| {
            let done = done.clone();
            writer
                .write(move |_| done.send(()).map_err(|error| Error::new("test", error)))
                .err()
        });
        let told = told.or_else(|| writer.finish().err()).unwrap();
        assert!(
            matches!(&told, Stopped::Failed(error) if error.kind() == ErrorKind::Io),
            "{told:?}"
        );
        assert_eq!(told.to_string(), full_disk().to_string());
        assert!(log.try_iter().next().is_none());
    }
}
