//! Durations as Go writes them: `10s`, `1h15m`, `-1.5s`.

use crate::manifest::error::invalid;
use crate::manifest::reader::Reader;

/// A field that holds a duration, in microseconds. None: it is absent, or a mistake, which is reported.
pub(super) fn duration(r: &Reader<'_>, field: &str) -> Option<i64> {
    let text = r.text(field)?;
    let parsed = parse(text);
    if parsed.is_none() {
        r.error_in(field, invalid(text, "must be a duration such as \"10s\" or \"1m30s\""));
    }
    parsed
}

fn parse(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0_f64;
    loop {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..unit_at].parse().ok()?;
        let unit_and_rest = &rest[unit_at..];
        let end = unit_and_rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(unit_and_rest.len());
        let micros = match &unit_and_rest[..end] {
            "h" => 3.6e9,
            "m" => 6e7,
            "s" => 1e6,
            "ms" => 1e3,
            "us" | "µs" | "μs" => 1.0,
            "ns" => 1e-3,
            _ => return None,
        };
        total += number * micros;
        rest = &unit_and_rest[end..];
        if rest.is_empty() {
            break;
        }
    }
    // Go's durations end at about 292 years.
    if total > 9.2e15 {
        return None;
    }
    #[allow(clippy::cast_possible_truncation)] // In range, as just checked.
    let micros = total as i64;
    Some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("10s", Some(10_000_000)),
            ("1h15m", Some(4_500_000_000)),
            ("-1.5s", Some(-1_500_000)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("100ms", Some(100_000)),
            ("", None),
            ("10", None),
            ("s", None),
            ("1d", None),
            ("10 s", None),
            ("999999999999h", None),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
