//! Labels, annotations and other string maps of an object.

use super::Str;

/// String pairs, sorted by key. Objects carry a handful, so a sorted vector beats any map in space and in look-up time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Labels(Vec<(Str, Str)>);

impl Labels {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Str> {
        // Up to about eight pairs a linear scan wins over a binary search; both are one branch here.
        if self.0.len() <= 8 {
            return self.0.iter().find(|(k, _)| &**k == key).map(|(_, v)| v);
        }
        self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &self.0[i].1)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Sets a value, replacing an earlier one.
    pub fn insert(&mut self, key: Str, value: Str) {
        match self.0.binary_search_by(|(k, _)| k.cmp(&key)) {
            Ok(i) => self.0[i].1 = value,
            Err(i) => self.0.insert(i, (key, value)),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Str, &Str)> {
        self.0.iter().map(|(k, v)| (k, v))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether every pair of `self` is also in `other`.
    pub fn is_subset_of(&self, other: &Labels) -> bool {
        self.0.iter().all(|(k, v)| other.get(k) == Some(v))
    }
}

impl FromIterator<(Str, Str)> for Labels {
    /// Of equal keys the last one stays.
    fn from_iter<I: IntoIterator<Item = (Str, Str)>>(pairs: I) -> Self {
        let mut list: Vec<(Str, Str)> = pairs.into_iter().collect();
        list.sort_by(|a, b| a.0.cmp(&b.0));
        list.reverse();
        list.dedup_by(|a, b| a.0 == b.0);
        list.reverse();
        Self(list)
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        pairs.into_iter().map(|(k, v)| (Str::from(k), Str::from(v))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_keys_the_last_stays() {
        let labels: Labels = [("b", "1"), ("a", "1"), ("b", "2"), ("b", "3")].into_iter().collect();
        assert_eq!(labels.len(), 2);
        assert_eq!(labels.get("b").map(|v| &**v), Some("3"));
    }

    #[test]
    fn look_up_works_at_every_size() {
        for n in 0..40 {
            let labels: Labels = (0..n).map(|i| (Str::from(format!("k{i}")), Str::from(format!("v{i}")))).collect();
            for i in 0..n {
                assert_eq!(labels.get(&format!("k{i}")).map(std::string::ToString::to_string), Some(format!("v{i}")));
            }
            assert_eq!(labels.get("absent"), None);
        }
    }
}
