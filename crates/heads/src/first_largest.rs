//! Ties go to the first.

/// The largest of some things, and of equally large ones the first. `Iterator::max_by` takes the
/// last.
///
/// What has no size (NaN) counts as larger than all else, so that a broken number is seen.
///
/// ```
/// use headlight_heads::first_largest;
///
/// let logits = [0.5, 2.0, 2.0, -1.0];
/// assert_eq!(first_largest(0..4, |&token| logits[token]), Some(1));
/// assert_eq!(first_largest([0.0, -0.0], |x| -x).map(f64::is_sign_negative), Some(false)); // equal
/// assert_eq!(first_largest([0_u8; 0], |_| 1.0), None);
/// ```
pub fn first_largest<T>(
    things: impl IntoIterator<Item = T>,
    size: impl Fn(&T) -> f64,
) -> Option<T> {
    let mut found: Option<(f64, T)> = None;
    for thing in things {
        // −0 + 0 is 0: the two zeros are equal here, as they are in arithmetic.
        let size = size(&thing) + 0.0;
        let is_larger = match &found {
            Some((largest, _)) => size.total_cmp(largest).is_gt(),
            None => true,
        };
        if is_larger {
            found = Some((size, thing));
        }
    }
    found.map(|(_, thing)| thing)
}
