//! Manifests in files: every object with the place where it stands, and everything that is wrong at once.
//!
//! For the command line (`--cluster FILE...`, `-f FILE`). Objects keep the order of the files. Promise: an error names the
//! file, the document in it, the object and the field, or file, line and column where the text itself is broken; one bad
//! object never hides the others.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::error::{Listed, ManifestError, Warning};
use super::syntax::{SyntaxError, documents};
use super::{Item, ObjectManifest, Options, PodManifest, objects, pods};
use crate::model::{Object, ObjectRef, Pod, Str};

/// Where an object stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub file: Str,
    /// From 1.
    pub document: usize,
    /// Which item of the document's list, from 0, lists in lists flattened. None: the document is the object.
    pub item: Option<usize>,
}

impl fmt::Display for Place {
    /// `cluster.yaml: document 2`, `pods.json: document 1 items[4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}", self.file, self.document)?;
        self.item.map_or(Ok(()), |i| write!(f, " items[{i}]"))
    }
}

/// An object and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed<T> {
    pub value: T,
    pub place: Place,
    pub warnings: Vec<Warning>,
}

/// What can go wrong with files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    #[error("{file}: {reason}")]
    Unreadable { file: Str, reason: String },
    #[error("{file}:{error}")]
    Syntax { file: Str, error: SyntaxError },
    #[error("{place}: {}: {}", .error.object(), Listed(&.error.errors))]
    Object { place: Place, error: ManifestError },
    #[error("{second}: {object}: already given at {first}")]
    Duplicate { object: ObjectRef, first: Place, second: Place },
    #[error("{second}: {object}: uid {} is that of {other} at {first}", .object.uid)]
    SharedUid { object: ObjectRef, other: ObjectRef, first: Place, second: Place },
}

/// What files hold. Only good as a whole if `errors` is empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContents<T = Object> {
    pub objects: Vec<Placed<T>>,
    /// How many objects of kinds that weren't asked for, by kind.
    pub skipped: BTreeMap<String, usize>,
    pub errors: Vec<FileError>,
}

impl<T> Default for FileContents<T> {
    fn default() -> Self {
        Self { objects: Vec::new(), skipped: BTreeMap::new(), errors: Vec::new() }
    }
}

/// The objects of a text. `source` is what it is called in messages.
pub fn read_str(text: &str, source: &str, options: Options) -> FileContents {
    let mut contents = FileContents::default();
    contents.add_text(text, source, |value| objects(value, options));
    contents.refuse_duplicates(ObjectRef::of);
    contents
}

/// The objects of a file; `-` is standard input.
pub fn read_file(path: &Path, options: Options) -> FileContents {
    read_files(&[path], options)
}

/// The objects of several files together. The same object twice is an error, wherever the two stand.
pub fn read_files<P: AsRef<Path>>(paths: &[P], options: Options) -> FileContents {
    let mut contents = FileContents::default();
    for path in paths {
        contents.add_file(path.as_ref(), |value| objects(value, options));
    }
    contents.refuse_duplicates(ObjectRef::of);
    contents
}

/// As [`read_files`], each object with its manifest.
pub fn read_object_manifests<P: AsRef<Path>>(paths: &[P], options: Options) -> FileContents<ObjectManifest> {
    let mut contents = FileContents::default();
    for path in paths {
        contents.add_file(path.as_ref(), |value| super::object_manifests(value, options));
    }
    contents.refuse_duplicates(|read| ObjectRef::of(&read.object));
    contents
}

/// The pods of a text, those of workload templates included (see [`super::pod_from`]). Other kinds are counted as skipped.
pub fn read_pods_str(text: &str, source: &str, options: Options) -> FileContents<Pod> {
    let mut contents = FileContents::default();
    contents.add_text(text, source, |value| pods(value, options));
    contents
}

/// The pods of a file, likewise; `-` is standard input.
pub fn read_pods(path: &Path, options: Options) -> FileContents<Pod> {
    let mut contents = FileContents::default();
    contents.add_file(path, |value| pods(value, options));
    contents
}

/// As [`read_pods`], each pod with its manifest.
pub fn read_pod_manifests(path: &Path, options: Options) -> FileContents<PodManifest> {
    let mut contents = FileContents::default();
    contents.add_file(path, |value| super::pod_manifests(value, options));
    contents
}

impl<T> FileContents<T> {
    fn add_file(&mut self, path: &Path, read: impl Fn(&Value) -> Vec<Item<T>>) {
        let is_stdin = path.as_os_str() == "-";
        let file = if is_stdin { "standard input".into() } else { path.display().to_string() };
        let mut bytes = Vec::new();
        let result = if is_stdin {
            std::io::stdin().read_to_end(&mut bytes)
        } else {
            std::fs::File::open(path).and_then(|mut f| f.read_to_end(&mut bytes))
        };
        let reason = match result {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "no such file".to_owned(),
            Err(error) => format!("can't be read: {error}"),
            Ok(_) => match std::str::from_utf8(&bytes) {
                Ok(text) => return self.add_text(text, &file, read),
                Err(_) => "isn't UTF-8 text".to_owned(),
            },
        };
        self.errors.push(FileError::Unreadable { file: file.into(), reason });
    }

    fn add_text(&mut self, text: &str, source: &str, read: impl Fn(&Value) -> Vec<Item<T>>) {
        let file = Str::from(source);
        let (documents, errors) = documents(text);
        self.errors.extend(errors.into_iter().map(|error| FileError::Syntax { file: file.clone(), error }));
        for document in documents {
            let is_list = super::is_list(&document.value);
            for (i, item) in read(&document.value).into_iter().enumerate() {
                let place = Place { file: file.clone(), document: document.number, item: is_list.then_some(i) };
                match item {
                    Item::Read(parsed) => {
                        self.objects.push(Placed { value: parsed.value, place, warnings: parsed.warnings });
                    }
                    Item::Skipped { kind } => *self.skipped.entry(kind).or_default() += 1,
                    Item::Invalid(error) => self.errors.push(FileError::Object { place, error }),
                }
            }
        }
    }
}

impl<T> FileContents<T> {
    /// Names and uids must be unique in what is loaded together; of two, the first stays.
    fn refuse_duplicates(&mut self, named: impl Fn(&T) -> ObjectRef) {
        let mut by_name: HashMap<ObjectRef, usize> = HashMap::with_capacity(self.objects.len());
        let mut by_uid: HashMap<ObjectRef, usize> = HashMap::with_capacity(self.objects.len());
        let mut kept: Vec<Placed<T>> = Vec::with_capacity(self.objects.len());
        for placed in self.objects.drain(..) {
            let object = named(&placed.value);
            let name = ObjectRef { uid: Str::default(), ..object.clone() };
            let uid = ObjectRef { namespace: Str::default(), name: Str::default(), ..object.clone() };
            if let Some(first) = by_name.get(&name).and_then(|i| kept.get(*i)) {
                let (first, second) = (first.place.clone(), placed.place);
                self.errors.push(FileError::Duplicate { object: name, first, second });
            } else if let Some(first) = by_uid.get(&uid).and_then(|i| kept.get(*i)) {
                let other = named(&first.value);
                let (first, second) = (first.place.clone(), placed.place);
                self.errors.push(FileError::SharedUid { object, other, first, second });
            } else {
                by_name.insert(name, kept.len());
                by_uid.insert(uid, kept.len());
                kept.push(placed);
            }
        }
        self.objects = kept;
    }
}
