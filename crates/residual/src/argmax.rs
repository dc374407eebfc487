//! Which of some numbers is the largest.

/// The index of the largest number, the first of equals, as everywhere a token is chosen here. NaN
/// is passed over; `None` if nothing is left.
///
/// ```
/// use headlight_residual::argmax;
///
/// assert_eq!(argmax(&[1.0, 3.0, 2.0, 3.0]), Some(1));
/// assert_eq!(argmax(&[-0.0, 0.0]), Some(0)); // they are equal
/// assert_eq!(argmax(&[f32::NAN, f32::NEG_INFINITY]), Some(1));
/// assert_eq!(argmax(&[]), None);
/// ```
#[must_use]
pub fn argmax(numbers: &[f32]) -> Option<usize> {
    let mut largest: Option<usize> = None;
    for (index, &number) in numbers.iter().enumerate() {
        let is_larger = largest.is_none_or(|largest| number > numbers[largest]);
        if is_larger && !number.is_nan() {
            largest = Some(index);
        }
    }
    largest
}
