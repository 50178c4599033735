//! Quantities against an independent rational: digits on paper, without any of the arithmetic of the model.
//!
//! The oracle keeps a magnitude as decimal digits. Multiplying by two is done digit by digit, by ten by appending a zero;
//! dividing by ten cuts the last digit off and remembers whether anything was lost. That is slow, exact at any size, and
//! shares nothing with `Quantity`, which computes in 128-bit nano units.

use berth::model::Quantity;
use proptest::prelude::*;

/// The suffixes with the power of ten and the power of two that they stand for.
const SUFFIXES: [(&str, i64, u32); 16] = [
    ("", 0, 0),
    ("n", -9, 0),
    ("u", -6, 0),
    ("m", -3, 0),
    ("k", 3, 0),
    ("M", 6, 0),
    ("G", 9, 0),
    ("T", 12, 0),
    ("P", 15, 0),
    ("E", 18, 0),
    ("Ki", 0, 10),
    ("Mi", 0, 20),
    ("Gi", 0, 30),
    ("Ti", 0, 40),
    ("Pi", 0, 50),
    ("Ei", 0, 60),
];

#[derive(Debug, Clone)]
struct Parts {
    negative: bool,
    whole: String,
    fraction: String,
    ten: i64,
    two: u32,
}

impl Parts {
    /// The magnitude in units of 10^-`scale`, rounded up to a whole number; decimal digits without leading zeros.
    fn magnitude(&self, scale: u32) -> Vec<u8> {
        let mut digits: Vec<u8> = self.whole.bytes().chain(self.fraction.bytes()).map(|b| b - b'0').collect();
        for _ in 0..self.two {
            let mut carry = 0;
            for digit in digits.iter_mut().rev() {
                let doubled = *digit * 2 + carry;
                (*digit, carry) = (doubled % 10, doubled / 10);
            }
            if carry > 0 {
                digits.insert(0, carry);
            }
        }
        let mut exponent = self.ten + i64::from(scale);
        self.fraction.bytes().for_each(|_| exponent -= 1);
        while exponent > 0 {
            digits.push(0);
            exponent -= 1;
        }
        let mut lost = false;
        while exponent < 0 && !digits.is_empty() {
            lost |= digits.pop() != Some(0);
            exponent += 1;
        }
        if lost {
            let mut i = digits.len();
            loop {
                if i == 0 {
                    digits.insert(0, 1);
                    break;
                }
                i -= 1;
                if digits[i] < 9 {
                    digits[i] += 1;
                    break;
                }
                digits[i] = 0;
            }
        }
        let zeros = digits.iter().take_while(|d| **d == 0).count();
        digits.drain(..zeros);
        digits
    }

    /// What Kubernetes' `ScaledValue` would answer, held at the ends of an i64.
    fn scaled(&self, scale: u32) -> i64 {
        let text: String = self.magnitude(scale).iter().map(|d| char::from(b'0' + d)).collect();
        let mut magnitude = if text.is_empty() { 0 } else { text.parse::<i128>().unwrap_or(i128::MAX) };
        if self.two > 0 {
            // Values with a binary suffix are capped at 2^63-1 units.
            magnitude = magnitude.min(i128::from(i64::MAX) * 10i128.pow(scale));
        }
        let signed = if self.negative { -magnitude } else { magnitude };
        i64::try_from(signed).unwrap_or(if signed > 0 { i64::MAX } else { i64::MIN })
    }
}

fn number() -> impl Strategy<Value = (String, String, String)> {
    // Either side of the dot may be missing, not both.
    ("[0-9]{0,30}", proptest::option::of("[0-9]{0,30}")).prop_map(|(whole, fraction)| {
        let no_digit = whole.is_empty() && fraction.as_ref().is_none_or(String::is_empty);
        let whole = if no_digit { "0".to_owned() } else { whole };
        let text = fraction.as_ref().map_or_else(|| whole.clone(), |f| format!("{whole}.{f}"));
        (text, whole, fraction.unwrap_or_default())
    })
}

fn suffix() -> impl Strategy<Value = (String, i64, u32)> {
    prop_oneof![
        3 => proptest::sample::select(&SUFFIXES[..]).prop_map(|(text, ten, two)| (text.to_owned(), ten, two)),
        1 => ("[eE]", -60..60i64, any::<bool>()).prop_map(|(e, n, plus)| {
            let sign = if plus && n >= 0 { "+" } else { "" };
            (format!("{e}{sign}{n}"), n, 0)
        }),
    ]
}

fn quantity() -> impl Strategy<Value = (String, Parts)> {
    (proptest::sample::select(&["", "-", "+"][..]), number(), suffix()).prop_map(
        |(sign, (text, whole, fraction), (suffix, ten, two))| {
            let parts = Parts { negative: sign == "-", whole, fraction, ten, two };
            (format!("{sign}{text}{suffix}"), parts)
        },
    )
}

/// The grammar of spec section 2.1, read off the page.
fn is_quantity(text: &str) -> bool {
    let rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, suffix) = rest.split_at(number);
    let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|n| n.parse::<i64>().is_ok());
    number.matches('.').count() <= 1
        && number.contains(|c: char| c.is_ascii_digit())
        && (exponent || SUFFIXES.iter().any(|(s, _, _)| *s == suffix))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_equal_the_rational_rounded_up((text, parts) in quantity()) {
        let quantity: Quantity = text.parse().map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(quantity.value(), parts.scaled(0), "value of {}", &text);
        prop_assert_eq!(quantity.milli_value(), parts.scaled(3), "milli of {}", &text);
        prop_assert_eq!(quantity.round_up_to_milli().milli_value(), parts.scaled(3), "rounded milli of {}", &text);
        prop_assert_eq!(quantity.is_zero(), parts.magnitude(9).is_empty(), "zero {}", &text);
    }

    #[test]
    fn what_is_printed_reads_back_the_same((text, _) in quantity()) {
        let quantity: Quantity = text.parse().map_err(|e| TestCaseError::fail(format!("{text}: {e}")))?;
        prop_assert_eq!(quantity.to_string().parse(), Ok(quantity), "{} printed as {}", text, quantity);
    }

    #[test]
    fn order_is_that_of_the_rationals((a, left) in quantity(), (b, right) in quantity()) {
        // Below the cap, nano units decide; compared as digits, shorter is smaller.
        let key = |p: &Parts| { let m = p.magnitude(9); (m.len(), m) };
        let (x, y): (Quantity, Quantity) = (a.parse().unwrap(), b.parse().unwrap());
        if x.value().unsigned_abs().max(y.value().unsigned_abs()) > u64::MAX / 4 {
            return Ok(());
        }
        let expected = match (left.negative && !key(&left).1.is_empty(), right.negative && !key(&right).1.is_empty()) {
            (false, false) => key(&left).cmp(&key(&right)),
            (true, true) => key(&right).cmp(&key(&left)),
            (true, false) => std::cmp::Ordering::Less,
            (false, true) => std::cmp::Ordering::Greater,
        };
        prop_assert_eq!(x.cmp(&y), expected, "{} and {}", a, b);
    }

    #[test]
    fn a_text_is_a_quantity_exactly_if_it_follows_the_grammar(text in "[-+]?[0-9.]{0,4}[-+eEinumkKMGTP0-9 x]{0,4}") {
        prop_assert_eq!(text.parse::<Quantity>().is_ok(), is_quantity(&text), "{:?}", text);
    }
}
