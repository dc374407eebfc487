//! Where tensors live.

use burn::tensor::Device;
use headlight_run::Error;

/// Names that `--device` takes, and the cargo feature each needs.
const KNOWN: [&str; 7] = ["flex", "ndarray", "wgpu", "vulkan", "metal", "cuda", "rocm"];

/// The device called `name`.
///
/// # Errors
/// If there is no such device, or this program was built without it; the message says how to get
/// it.
pub fn open(name: &str) -> Result<Device, Error> {
    #[cfg(feature = "gpu")]
    one_stream();
    match name {
        #[cfg(feature = "flex")]
        "flex" => Ok(Device::flex()),
        #[cfg(feature = "ndarray")]
        #[expect(
            deprecated,
            reason = "kept for comparison with Flex for as long as Burn ships it"
        )]
        "ndarray" => Ok(Device::ndarray()),
        #[cfg(feature = "wgpu")]
        "wgpu" => Ok(Device::wgpu(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "vulkan")]
        "vulkan" => Ok(Device::vulkan(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "metal")]
        "metal" => Ok(Device::metal(burn::tensor::DeviceKind::DefaultDevice)),
        #[cfg(feature = "rocm")]
        "rocm" => Ok(Device::rocm(burn::tensor::DeviceIndex::Default)),
        #[cfg(feature = "cuda")]
        "cuda" => Ok(Device::cuda(burn::tensor::DeviceIndex::Default)),
        _ if KNOWN.contains(&name) => Err(Error::new(
            format_args!("--device {name}"),
            format_args!("this program was built without it; build with --features {name}"),
        )),
        _ => Err(Error::new(
            format_args!("--device {name}"),
            format_args!("there is no such device, there are: {}", KNOWN.join(", ")),
        )),
    }
}

/// Lets all threads of this process send their work to a GPU in one queue.
///
/// Unless told otherwise, Burn's runtime (`CubeCL` 0.11) has a queue for each thread. A training step
/// goes through several threads, and with a queue each what one has computed is read by another
/// before it is there, at times: of 26 runs of ten steps, 11 ended at another loss, of 10 with one
/// queue none (wgpu on Mesa's lavapipe, 2 cores that had other work too).
#[cfg(feature = "gpu")]
fn one_stream() {
    use cubecl_environment::stream::{StreamPolicy, set_policy};
    set_policy(StreamPolicy::Single);
}
