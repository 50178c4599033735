//! Label selectors in one line, as `kubectl -l` takes them: `pool=apps,tier in (a,b),!spot,disks>2`.

use crate::evict::policy::LabelQuery;
use crate::manifest::{invalid, label_value_problem, qualified_name_problem};
use crate::model::Str;
use crate::model::node_selector::{NodeOperator, NodeRequirement, parse_label_integer};

/// An empty text selects everything.
pub(super) fn parse(text: &str) -> Result<LabelQuery, String> {
    let mut scanner = Scanner { rest: text };
    let mut requirements = Vec::new();
    if scanner.peek() != Token::End {
        loop {
            requirements.push(requirement(&mut scanner)?);
            match scanner.next() {
                Token::End => break,
                Token::Sign(",") => {}
                other => return Err(format!("found {other}, expected ',' or the end")),
            }
        }
    }
    Ok(LabelQuery::new(requirements))
}

fn requirement(scanner: &mut Scanner<'_>) -> Result<NodeRequirement, String> {
    let absent = scanner.skip("!");
    let key = match scanner.next() {
        Token::Word(key) => key,
        other => return Err(format!("found {other}, expected a label key")),
    };
    if let Some(problem) = qualified_name_problem(key) {
        return Err(invalid(key, problem));
    }
    let op = if absent { NodeOperator::DoesNotExist } else { operator(scanner)? };
    Ok(NodeRequirement { key: key.into(), op })
}

fn operator(scanner: &mut Scanner<'_>) -> Result<NodeOperator, String> {
    let sign = match scanner.peek() {
        Token::End | Token::Sign(",") => return Ok(NodeOperator::Exists),
        Token::Word(word @ ("in" | "notin")) => word,
        Token::Sign(sign @ ("=" | "==" | "!=" | ">" | "<")) => sign,
        other => return Err(format!("found {other}, expected one of =, ==, !=, in, notin, >, <")),
    };
    scanner.next();
    Ok(match sign {
        "in" => NodeOperator::In(values(scanner)?),
        "notin" => NodeOperator::NotIn(values(scanner)?),
        "!=" => NodeOperator::NotIn(vec![value(scanner)?]),
        ">" => NodeOperator::Gt(bound(scanner)?),
        "<" => NodeOperator::Lt(bound(scanner)?),
        _ => NodeOperator::In(vec![value(scanner)?]),
    })
}

/// What follows `=`; it may be empty.
fn value(scanner: &mut Scanner<'_>) -> Result<Str, String> {
    match scanner.peek() {
        Token::Word(word) => {
            scanner.next();
            checked(word)
        }
        Token::End | Token::Sign(",") => Ok(Str::default()),
        other @ Token::Sign(_) => Err(format!("found {other}, expected a label value")),
    }
}

fn checked(word: &str) -> Result<Str, String> {
    label_value_problem(word).map_or_else(|| Ok(word.into()), |problem| Err(invalid(word, problem)))
}

fn bound(scanner: &mut Scanner<'_>) -> Result<i64, String> {
    let text = value(scanner)?;
    parse_label_integer(&text).ok_or_else(|| invalid(&text, "for '>' and '<' the value must be an integer"))
}

/// `(a, b)`; an empty place stands for the empty value.
fn values(scanner: &mut Scanner<'_>) -> Result<Vec<Str>, String> {
    let found = scanner.next();
    if found != Token::Sign("(") {
        return Err(format!("found {found}, expected '('"));
    }
    let mut values = Vec::new();
    loop {
        values.push(match scanner.peek() {
            Token::Word(word) => {
                scanner.next();
                checked(word)?
            }
            _ => Str::default(),
        });
        match scanner.next() {
            Token::Sign(")") => break,
            Token::Sign(",") => {}
            other => return Err(format!("found {other}, expected ',' or ')'")),
        }
    }
    values.sort();
    values.dedup();
    Ok(values)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Sign(&'a str),
    End,
}

impl std::fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(text) | Self::Sign(text) => write!(f, "'{text}'"),
            Self::End => f.write_str("the end"),
        }
    }
}

struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Token<'a> {
        Self { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        let is_sign = |c: char| "=!(),<>".contains(c);
        let text = self.rest.trim_start();
        let two = ["==", "!="].iter().any(|sign| text.starts_with(sign));
        let end = match text.chars().next() {
            None => return Token::End,
            Some(_) if two => 2,
            Some(c) if is_sign(c) => 1,
            Some(_) => text.find(|c: char| is_sign(c) || c.is_whitespace()).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        self.rest = rest;
        if token.starts_with(is_sign) { Token::Sign(token) } else { Token::Word(token) }
    }

    fn skip(&mut self, sign: &str) -> bool {
        let found = self.peek() == Token::Sign(sign);
        if found {
            self.next();
        }
        found
    }
}

/// The text that reads back as this query.
pub(super) fn format(query: &LabelQuery) -> String {
    let requirement = |r: &NodeRequirement| {
        let key = &r.key;
        let listed = |op: &str, values: &[Str]| format!("{key} {op} ({})", values.join(","));
        match &r.op {
            NodeOperator::In(values) if values.len() == 1 => format!("{key}={}", values[0]),
            NodeOperator::NotIn(values) if values.len() == 1 => format!("{key}!={}", values[0]),
            NodeOperator::In(values) => listed("in", values),
            NodeOperator::NotIn(values) => listed("notin", values),
            NodeOperator::Exists => key.to_string(),
            NodeOperator::DoesNotExist => format!("!{key}"),
            NodeOperator::Gt(bound) => format!("{key}>{bound}"),
            NodeOperator::Lt(bound) => format!("{key}<{bound}"),
            NodeOperator::Invalid => format!("{key} in ()"),
        }
    };
    query.requirements().iter().map(requirement).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Labels;

    #[test]
    fn selectors_match_as_kubectl_reads_them() {
        let labels: Labels = [("pool", "apps"), ("disks", "3"), ("empty", "")].into_iter().collect();
        for (text, matches) in [
            ("", true),
            ("  ", true),
            ("pool=apps", true),
            ("pool==apps , disks", true),
            ("pool!=apps", false),
            ("absent!=x", true),
            ("pool in (web, apps),!spot", true),
            ("pool notin (web,apps)", false),
            ("absent notin (x)", true),
            ("!pool", false),
            ("disks>2,disks<4", true),
            ("disks>3", false),
            ("empty=", true),
            ("empty in ()", true),
            ("absent=", false),
            ("pool", true),
            ("in in (in)", false),
        ] {
            let query = parse(text).unwrap();
            assert_eq!(query.matches(&labels), matches, "{text}");
            assert_eq!(parse(&format(&query)).unwrap(), query, "{text}");
        }
    }

    #[test]
    fn broken_selectors_say_what_was_expected() {
        for (text, message) in [
            ("a=b,", "found the end, expected a label key"),
            ("=b", "found '=', expected a label key"),
            ("a b", "found 'b', expected one of =, ==, !=, in, notin, >, <"),
            ("a in b", "found 'b', expected '('"),
            ("a in (b", "found the end, expected ',' or ')'"),
            ("a=b c=d", "found 'c', expected ',' or the end"),
            ("a>x", "Invalid value: \"x\": for '>' and '<' the value must be an integer"),
            ("a=(", "found '(', expected a label value"),
        ] {
            assert_eq!(parse(text).unwrap_err(), message, "{text}");
        }
        assert!(parse("a/b/c=d").is_err() && parse("a=b_").is_err());
    }
}
