//! The `argument` of a predicate or priority: exactly one of the kinds that it can have.

use super::fields::Fields;

/// Which kind an argument is of; the name is that of its field.
pub(super) enum Argument<'a> {
    /// There is no argument.
    None,
    One(&'static str, Fields<'a>),
    /// There is one, and it was a mistake.
    Broken,
}

/// `what` is `predicate` or `priority`; each kind comes with the fields that it has.
pub(super) fn argument<'a>(r: &Fields<'a>, what: &str, name: &str, kinds: &[(&'static str, &[&str])]) -> Argument<'a> {
    if r.get("argument").is_none() {
        return Argument::None;
    }
    let known: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
    let Some(argument) = r.object("argument", &known) else { return Argument::Broken };
    let given: Vec<_> = kinds.iter().filter(|(kind, _)| argument.get(kind).is_some()).collect();
    match given.as_slice() {
        [(kind, fields)] => argument.object(kind, fields).map_or(Argument::Broken, |read| Argument::One(kind, read)),
        _ => {
            let text = format!("exactly 1 {what} argument is required, numArgs: {}, {what}: {name}", given.len());
            r.error("argument", text);
            Argument::Broken
        }
    }
}
