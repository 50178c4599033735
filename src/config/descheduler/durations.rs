//! Durations as Go writes them: `24h`, `1h30m`, `-1.5s`, `0`.

/// Microseconds; what is finer is cut off. None: not a duration, or one that Go couldn't hold (292 years).
pub(super) fn parse_micros(text: &str) -> Option<i64> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut nanos: i128 = 0;
    let mut any = false;
    while !rest.is_empty() {
        let (number, unit) = split(rest, |c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = split(unit, |c: char| !c.is_ascii_digit() && c != '.');
        nanos = nanos.checked_add(amount(number, unit_nanos(unit)?)?)?;
        (rest, any) = (after, true);
    }
    let nanos = i64::try_from(if negative { -nanos } else { nanos }).ok()?;
    any.then_some(nanos / 1_000)
}

/// As Go prints it, in its largest units.
pub(super) fn format_micros(micros: i64) -> String {
    let sign = if micros < 0 { "-" } else { "" };
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, total % 1_000_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let mut text = sign.to_owned();
    if hours > 0 {
        text.push_str(&format!("{hours}h"));
    }
    if minutes > 0 {
        text.push_str(&format!("{minutes}m"));
    }
    if fraction > 0 {
        text.push_str(&format!("{seconds}.{}s", format!("{fraction:06}").trim_end_matches('0')));
    } else if seconds > 0 || total < 1_000_000 {
        text.push_str(&format!("{seconds}s"));
    }
    text
}

fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

/// A decimal number of units.
fn amount(number: &str, unit: i128) -> Option<i128> {
    let (units, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (units.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    // Nineteen digits are more than 292 years of nanoseconds, and more than any fraction can say.
    let parse = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<i64>().ok().map(i128::from) };
    let fraction = &fraction[..fraction.len().min(18)];
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    parse(units)?.checked_mul(unit)?.checked_add(parse(fraction)?.checked_mul(unit)? / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, micros) in [
            ("24h", Some(86_400_000_000)),
            ("1h30m", Some(5_400_000_000)),
            ("-1.5s", Some(-1_500_000)),
            ("+.5s", Some(500_000)),
            ("1.s", Some(1_000_000)),
            ("300ms", Some(300_000)),
            ("999ns", Some(0)),
            ("5\u{b5}s", Some(5)),
            ("0", Some(0)),
            ("", None),
            ("-", None),
            ("5", None),
            ("s", None),
            (".s", None),
            ("1d", None),
            ("1..5s", None),
            ("1 h", None),
            ("2562047h", Some(9_223_369_200_000_000)),
            ("2562048h", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(parse_micros(text), micros, "{text}");
        }
    }

    #[test]
    fn a_printed_duration_reads_back_as_itself() {
        for micros in [0, 1, 60_000_000, 3_600_000_000, 5_400_000_000, -1_500_000, 86_461_000_001, 500_000] {
            assert_eq!(parse_micros(&format_micros(micros)), Some(micros), "{}", format_micros(micros));
        }
    }
}
