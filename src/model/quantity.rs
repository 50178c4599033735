//! Kubernetes quantities: exact decimals such as `100m`, `1.5Gi` or `12E2`.
//!
//! Grammar, rounding and error texts are those of `k8s.io/apimachinery/pkg/api/resource` (spec section 2.1). A value is
//! held as a whole number of nano units, which is the finest that Kubernetes keeps: anything finer is rounded away from
//! zero. Sums are therefore exact, and `value()`/`milli_value()` round up once, at the end.
//!
//! Range: ±1.7e29 units; sums and inputs beyond that saturate (the largest allocatable that an i64 can count is 9.2e18).
//! Whoever keeps a sum that amounts leave again adds [`Quantity::as_summand`]s, which don't.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Why a text is not a quantity. The texts are upstream's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum QuantityError {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An exact amount of a resource, in nano units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Quantity {
    nanos: i128,
}

const NANO: i128 = 1_000_000_000;
const MILLI_IN_NANOS: i128 = 1_000_000;
/// Significant decimal digits that a u128 is sure to hold.
const MAX_DIGITS: usize = 38;

impl Quantity {
    pub const ZERO: Self = Self { nanos: 0 };

    /// A whole number of units (bytes, cores, devices).
    pub const fn from_units(units: i64) -> Self {
        Self { nanos: units as i128 * NANO }
    }

    /// A number of thousandths (millicores).
    pub const fn from_milli(milli: i64) -> Self {
        Self { nanos: milli as i128 * MILLI_IN_NANOS }
    }

    /// The amount in whole units, fractions rounded away from zero; saturates at the ends of `i64`.
    pub fn value(self) -> i64 {
        saturated(self.whole_units())
    }

    /// The amount in thousandths, fractions rounded away from zero; saturates at the ends of `i64`.
    pub fn milli_value(self) -> i64 {
        saturated(self.whole_milli())
    }

    /// As [`Self::value`], however large.
    pub fn whole_units(self) -> i128 {
        div_away_from_zero(self.nanos, NANO)
    }

    /// As [`Self::milli_value`], however large.
    pub fn whole_milli(self) -> i128 {
        div_away_from_zero(self.nanos, MILLI_IN_NANOS)
    }

    /// The amount, or the nearest of those within twice what an i64 counts in units: beyond, no reader tells amounts apart.
    /// Four billion of them can be added and taken away in any order, and the sum comes back exactly.
    #[must_use]
    pub fn as_summand(self) -> Self {
        const MOST: i128 = 1 << 95;
        Self { nanos: self.nanos.clamp(-MOST, MOST) }
    }

    /// The amount rounded away from zero to whole thousandths, as the API server stores it in resource lists.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        let rest = self.nanos % MILLI_IN_NANOS;
        if rest == 0 {
            return self;
        }
        let whole = self.nanos - rest;
        Self { nanos: whole.saturating_add(MILLI_IN_NANOS * rest.signum()) }
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub fn is_positive(self) -> bool {
        self.nanos > 0
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// The exact value in nano units.
    pub fn nanos(self) -> i128 {
        self.nanos
    }
}

fn div_away_from_zero(nanos: i128, unit: i128) -> i128 {
    nanos / unit + (nanos % unit).signum()
}

fn saturated(number: i128) -> i64 {
    i64::try_from(number).unwrap_or(if number > 0 { i64::MAX } else { i64::MIN })
}

impl std::ops::Add for Quantity {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl std::ops::Sub for Quantity {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_sub(other.nanos) }
    }
}

impl std::ops::AddAssign for Quantity {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// What the suffix multiplies the number with.
#[derive(Clone, Copy)]
enum Scale {
    /// 10 to this power.
    Decimal(i64),
    /// 2 to this power.
    Binary(u32),
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            None => return Err(QuantityError::Format),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let number_len = rest.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        let (number, suffix) = rest.split_at(number_len);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if !suffix_is_well_formed(suffix) {
            return Err(QuantityError::Format);
        }
        if whole.len() + fraction.len() == 0 || fraction.contains('.') {
            return Err(if number.is_empty() { QuantityError::Format } else { QuantityError::Numeric });
        }
        let scale = parse_suffix(suffix)?;
        let magnitude = magnitude_in_nanos(whole, fraction, scale);
        Ok(Self { nanos: if negative { -magnitude } else { magnitude } })
    }
}

/// `[eEinumkKMGTP]*[-+]?[0-9]*`
fn suffix_is_well_formed(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.bytes().all(|b| b.is_ascii_digit())
}

fn parse_suffix(suffix: &str) -> Result<Scale, QuantityError> {
    Ok(match suffix {
        "" => Scale::Decimal(0),
        "n" => Scale::Decimal(-9),
        "u" => Scale::Decimal(-6),
        "m" => Scale::Decimal(-3),
        "k" => Scale::Decimal(3),
        "M" => Scale::Decimal(6),
        "G" => Scale::Decimal(9),
        "T" => Scale::Decimal(12),
        "P" => Scale::Decimal(15),
        "E" => Scale::Decimal(18),
        "Ki" => Scale::Binary(10),
        "Mi" => Scale::Binary(20),
        "Gi" => Scale::Binary(30),
        "Ti" => Scale::Binary(40),
        "Pi" => Scale::Binary(50),
        "Ei" => Scale::Binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
            Scale::Decimal(exponent.parse::<i64>().map_err(|_| QuantityError::Suffix)?)
        }
    })
}

/// The number times its scale, in nanos, rounded up.
fn magnitude_in_nanos(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let mut digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    // Positions after the decimal point that the digits span.
    let mut point = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let leading = digits.iter().take_while(|d| **d == 0).count();
    digits.drain(..leading);
    while digits.last() == Some(&0) {
        digits.pop();
        point -= 1;
    }
    if digits.is_empty() {
        return 0;
    }
    let (mut exponent, factor) = match scale {
        Scale::Decimal(power) => (power.saturating_add(9).saturating_sub(point), 1u64),
        Scale::Binary(power) => (9 - point, 1u64 << power),
    };
    let factor_digits = factor.ilog10() as usize;
    let mut lost = false;
    let mantissa = if digits.len() + factor_digits <= MAX_DIGITS {
        to_number(&digits).saturating_mul(u128::from(factor))
    } else {
        // More digits than fit: multiply on paper and cut off what is finer than a nano, before making a number of it.
        digits = times(&digits, factor);
        if exponent < 0 {
            let cut = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX).min(digits.len());
            let finer = digits.split_off(digits.len() - cut);
            lost = finer.iter().any(|d| *d != 0);
            exponent = 0;
        }
        to_number(&digits)
    };

    let cap = match scale {
        // Upstream caps binary-suffix values at the largest i64; decimal ones saturate at what we can hold.
        Scale::Binary(_) => i64::MAX as i128 * NANO,
        Scale::Decimal(_) => i128::MAX,
    };
    let power = u32::try_from(exponent.unsigned_abs()).unwrap_or(u32::MAX);
    let ten = 10u128.checked_pow(power);
    let nanos = match (exponent >= 0, ten) {
        (true, None) => u128::MAX,
        (true, Some(ten)) => mantissa.saturating_mul(ten).saturating_add(u128::from(lost)),
        (false, None) => 1,
        (false, Some(ten)) => mantissa / ten + u128::from(mantissa % ten != 0),
    };
    i128::try_from(nanos).unwrap_or(i128::MAX).min(cap)
}

/// The number that decimal digits spell; the largest one when there are too many.
fn to_number(digits: &[u8]) -> u128 {
    digits.iter().fold(0u128, |n, d| n.saturating_mul(10).saturating_add(u128::from(*d)))
}

/// Decimal digits times a factor.
fn times(digits: &[u8], factor: u64) -> Vec<u8> {
    let mut product = Vec::with_capacity(digits.len() + 20);
    let mut carry = 0u128;
    let mut push_last_digit = |n: u128| {
        product.push(u8::try_from(n % 10).unwrap_or(0));
        n / 10
    };
    for digit in digits.iter().rev() {
        carry = push_last_digit(carry + u128::from(*digit) * u128::from(factor));
    }
    while carry > 0 {
        carry = push_last_digit(carry);
    }
    product.reverse();
    product
}

impl fmt::Display for Quantity {
    /// Plain decimal with the coarsest of no suffix, `m`, `u` and `n` that is exact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, suffix) in [(NANO, ""), (MILLI_IN_NANOS, "m"), (1_000, "u")] {
            if self.nanos % unit == 0 {
                return write!(f, "{}{suffix}", self.nanos / unit);
            }
        }
        write!(f, "{}n", self.nanos)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn q(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn values_round_up_once() {
        for (text, milli, value) in [
            ("1", 1000, 1),
            ("100m", 100, 1),
            ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
            ("0.1Gi", 107_374_182_400, 107_374_183),
            ("1e3", 1_000_000, 1000),
            ("0.0001", 1, 1),
            ("100u", 1, 1),
            ("12E2", 1_200_000, 1200),
            (".5", 500, 1),
            ("5.", 5000, 5),
            ("-1.5", -1500, -2),
            ("+3", 3000, 3),
            ("1k", 1_000_000, 1000),
            ("1Ki", 1_024_000, 1024),
            ("0", 0, 0),
            ("1E-3", 1, 1),
        ] {
            assert_eq!((q(text).milli_value(), q(text).value()), (milli, value), "{text}");
        }
        assert_eq!(q("1E").value(), 1_000_000_000_000_000_000);
    }

    #[test]
    fn finer_than_a_nano_rounds_away_from_zero() {
        assert_eq!(q("1.5n").nanos(), 2);
        assert_eq!(q("-1.5n").nanos(), -2);
        assert_eq!(q("0.0000000000000000000000000000000000000000000001").nanos(), 1);
    }

    #[test]
    fn no_digit_is_lost_however_many_there_are() {
        assert_eq!(q("1.44936563528164779561Ei").value(), 1_671_004_808_954_375_994);
        assert_eq!(
            q("123456789012345678901234567890.123456789").nanos(),
            123_456_789_012_345_678_901_234_567_890_123_456_789
        );
        assert_eq!(q(&format!("0.5{}1Ki", "0".repeat(60))).value(), 513);
    }

    #[test]
    fn huge_values_saturate() {
        assert_eq!(q("16Ei").value(), i64::MAX);
        assert_eq!(q("1e99999").value(), i64::MAX);
        assert_eq!(q("-1e99999").value(), i64::MIN);
        assert_eq!(q("99999999999999999999999999999999999999999999Ki").value(), i64::MAX);
    }

    #[test]
    fn malformed_texts_are_refused_with_upstreams_words() {
        for (text, error) in [
            ("", QuantityError::Format),
            ("-", QuantityError::Format),
            ("1 ", QuantityError::Format),
            (" 1", QuantityError::Format),
            ("x", QuantityError::Format),
            ("KB", QuantityError::Format),
            ("1KB", QuantityError::Format),
            ("1.2.3", QuantityError::Numeric),
            (".", QuantityError::Numeric),
            ("1K", QuantityError::Suffix),
            ("1ki", QuantityError::Suffix),
            ("1mi", QuantityError::Suffix),
            ("1e", QuantityError::Suffix),
            ("1e+", QuantityError::Suffix),
            ("1m5", QuantityError::Suffix),
        ] {
            assert_eq!(text.parse::<Quantity>(), Err(error), "{text}");
        }
    }

    #[test]
    fn sums_are_exact_until_rounded() {
        assert_eq!((q("0.4m") + q("0.4m")).milli_value(), 1);
        assert_eq!((q("0.4m").round_up_to_milli() + q("0.4m").round_up_to_milli()).milli_value(), 2);
        assert_eq!(q("1.0001").round_up_to_milli().milli_value(), 1001);
    }

    #[test]
    fn sums_of_summands_come_back_however_large_the_amounts() {
        let amounts = ["1e99", "5Ei", "9223372036854775807m", "-1e99", "1m", "0"].map(|text| q(text).as_summand());
        let mut sum = q("3");
        (0..1_000).for_each(|i| sum += amounts[i % amounts.len()]);
        (0..1_000).rev().for_each(|i| sum = sum - amounts[i % amounts.len()]);
        assert_eq!(sum, q("3"));
        assert_eq!((q("1e99").as_summand().value(), q("-1e99").as_summand().value()), (i64::MAX, i64::MIN));
        assert_eq!((q("3").as_summand(), q("8Ei").as_summand().value()), (q("3"), i64::MAX));
    }

    #[test]
    fn the_largest_amounts_round_without_overflow() {
        assert_eq!(q("1e99").round_up_to_milli().value(), i64::MAX);
        assert_eq!(q("-1e99").round_up_to_milli().value(), i64::MIN);
    }
}
