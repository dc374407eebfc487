//! Headlight's own step.

use burn::tensor::Device;
use headlight_run::Config;
use headlight_tasks as tasks;
use headlight_tasks::Use;
use headlight_trainer::Updater;
use headlight_watch::model;

use crate::Sizes;

/// One step each time it is called.
pub fn stepper(sizes: Sizes, shards: usize, device: &Device) -> impl FnMut(usize) + use<> {
    let Sizes {
        layers,
        heads,
        width,
        length,
        batch,
        vocabulary,
        ..
    } = sizes;
    let feed_forward = if sizes.feed_forward { "gelu" } else { "none" };
    let text = format!(
        r#"
        task = {{ name = "repeat", vocabulary = {vocabulary} }}
        model = {{ n_layers = {layers}, n_heads = {heads}, d_model = {width}, n_ctx = {length}, feed_forward = "{feed_forward}" }}
        train = {{ steps = 10, batch_size = {batch}, learning_rate = 1e-3, shards = {shards} }}
        "#
    );
    let config = Config::parse(&text, "benchmark", &[]).expect("a valid configuration");
    let device = device.clone().autodiff();
    let task = tasks::build(&config.task, length, 0).expect("a task");
    let mut decoder = Some(model::build(&config, vocabulary, &device).expect("a model"));
    let mut updater = Updater::new(&config.train, device).expect("threads");
    move |step| {
        let sequences = tasks::batch(&*task, 0, Use::Training, step, batch);
        // Moved, not cloned: what is held twice cannot be updated in place.
        decoder = decoder
            .take()
            .map(|model| updater.update(model, &sequences, 1e-3).0);
    }
}
