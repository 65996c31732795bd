//! Compiled code on disk, for the next process that runs the same kernel.
//!
//! An entry is a file, named after a hash of all that its code depends on: whoever makes the key must leave nothing out. The
//! file says how long it is and what its hash is, and what does not verify is removed and counts as absent. A file appears
//! under its name when it is whole, so that processes need not know of each other.
//!
//! The cache is code that will be run, so it is taken from this user's own files alone, out of folders in which nobody else
//! may write. A cache that cannot be used, for that or any other reason, is as good as an empty one: nobody is told but the log.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::config::{self, CacheFolder};
use crate::trace::signals;

pub type Key = [u8; 32];

/// What an entry starts with; the last byte is raised when the format changes.
const MAGIC: &[u8; 8] = b"margayJ\x01";
/// The magic, the key, the length of what follows, the hash of all that.
const HEADER: usize = 8 + 32 + 8 + 32;
/// How names of entries end, so that nothing else in the folder is taken for one.
const SUFFIX: &str = ".mjit";
/// The same for files that are being written.
const UNFINISHED: &str = ".mjit-new";
/// After that long nobody writes an unfinished file any more.
const ABANDONED: Duration = Duration::from_secs(3600);
/// An entry's last use is noted this exactly; noting it is a write.
const EXACTNESS: Duration = Duration::from_secs(60);

/// The key for code that depends on these parts, in this order.
pub fn key(parts: &[&[u8]]) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        // No two lists of parts are one text.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// Whether anything can be kept.
pub fn is_there() -> bool {
    cache().is_some()
}

/// What was put under a key, in this process or another.
pub fn get(key: &Key) -> Option<Vec<u8>> {
    cache()?.get(key)
}

/// Keeps code under a key, if it can be kept.
pub fn put(key: &Key, code: &[u8]) {
    if let Some(cache) = cache() {
        cache.put(key, code);
    }
}

fn cache() -> Option<&'static Cache> {
    static CACHE: OnceLock<Option<Cache>> = OnceLock::new();
    CACHE
        .get_or_init(
            || match Cache::open(&config::get().jit_cache, config::get().jit_cache_size) {
                Ok(cache) => {
                    tracing::debug!("compiled kernels are kept in {}", cache.folder.display());
                    Some(cache)
                }
                Err(why) => {
                    tracing::debug!("compiled kernels are not kept: {why}");
                    None
                }
            },
        )
        .as_ref()
}

struct Cache {
    folder: PathBuf,
    /// In bytes.
    limit: u64,
}

impl Cache {
    /// The cache in a folder, which is made if it is not there.
    fn open(folder: &CacheFolder, limit: u64) -> Result<Cache, String> {
        // SAFETY: asks the kernel about this process.
        if unsafe { libc::getauxval(libc::AT_SECURE) } != 0 {
            return Err("the process has more rights than its caller, who sets the variables".into());
        }
        let folder = match folder {
            CacheFolder::Off => return Err("switched off".into()),
            CacheFolder::At(folder) => std::path::absolute(folder).map_err(|error| error.to_string())?,
            CacheFolder::Usual => {
                let variable = |name| std::env::var_os(name).map(PathBuf::from);
                usual_folder(variable("XDG_CACHE_HOME"), variable("HOME"))?
            }
        };
        if limit == 0 {
            return Err("it may hold nothing".into());
        }
        let in_words = |error: io::Error| format!("{}: {error}", folder.display());
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(in_words)?;
        check(&fs::metadata(&folder).map_err(in_words)?).map_err(|why| format!("{}: {why}", folder.display()))?;
        Ok(Cache { folder, limit })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(hex(key) + SUFFIX)
    }

    fn get(&self, key: &Key) -> Option<Vec<u8>> {
        let path = self.path(key);
        match read(&path, key, self.limit) {
            Ok(code) => Some(code),
            Err(Refusal::Absent) => None,
            Err(Refusal::Foreign(why)) => {
                tracing::debug!("{} is not used: {why}", path.display());
                None
            }
            Err(Refusal::Broken(why)) => {
                tracing::debug!("{} is removed: {why}", path.display());
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    fn put(&self, key: &Key, code: &[u8]) {
        let len = (HEADER + code.len()) as u64;
        if len > self.limit {
            return;
        }
        // What an entry takes must not end the process if there is a limit to the size of files.
        if let Err(error) = signals::quietly(|| self.write(key, code)) {
            tracing::debug!("a kernel is not kept in {}: {error}", self.folder.display());
        }
        // Looking at all entries is for few writes. Keys are random numbers, so this is every sixteenth, however short processes
        // live; and those that might fill the cache between two others.
        if key[31].is_multiple_of(16) || len > self.limit / 64 {
            self.sweep();
        }
    }

    fn write(&self, key: &Key, code: &[u8]) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let unique = format!(
            "{}-{}-{}{UNFINISHED}",
            hex(&key[..4]),
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let unfinished = self.folder.join(unique);
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW);
        let mut file = match options.open(&unfinished) {
            // Of a process with the same number, which is gone.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&unfinished)?;
                options.open(&unfinished)?
            }
            other => other?,
        };
        let written = file
            .write_all(&header(key, code))
            .and_then(|()| file.write_all(code))
            .and_then(|()| fs::rename(&unfinished, self.path(key)));
        if written.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        written
    }

    /// Removes the entries that were not used for longest, if they are too much together, and files that nobody finished.
    /// Another process may do the same at the same time, or read what goes: it has it open, and keeps it.
    fn sweep(&self) {
        let Ok(files) = fs::read_dir(&self.folder) else { return };
        let mut entries = Vec::new();
        for file in files.flatten() {
            let name = file.file_name();
            let (entry, unfinished) = (
                is_entry(&name),
                name.as_encoded_bytes().ends_with(UNFINISHED.as_bytes()),
            );
            if !entry && !unfinished {
                continue;
            }
            let Ok(metadata) = file.metadata() else { continue };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            if entry {
                entries.push((used, metadata.len(), file.path()));
            } else if used.elapsed().is_ok_and(|age| age > ABANDONED) {
                let _ = fs::remove_file(file.path());
            }
        }
        let mut total: u64 = entries.iter().map(|(_, len, _)| len).sum();
        if total <= self.limit {
            return;
        }
        // Further down than needed, so that the next writes have room.
        let aim = self.limit - self.limit / 4;
        entries.sort();
        let before = entries.len();
        let mut removed = 0;
        for (_, len, path) in entries {
            if total <= aim {
                break;
            }
            let _ = fs::remove_file(path);
            total -= len;
            removed += 1;
        }
        tracing::debug!("{removed} of {before} kernels in {} made room", self.folder.display());
    }
}

/// Where caches of this user's are: nothing is made in a home that is somebody else's, as it is under `sudo`.
fn usual_folder(caches: Option<PathBuf>, home: Option<PathBuf>) -> Result<PathBuf, String> {
    if let Some(caches) = caches.filter(|path| path.is_absolute()) {
        return Ok(caches.join("margay"));
    }
    let home = home
        .filter(|path| path.is_absolute())
        .ok_or("there is no home for them; MARGAY_JIT_CACHE may name a folder")?;
    let metadata = fs::metadata(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    if metadata.uid() != user() {
        return Err(format!("{} is another user's", home.display()));
    }
    Ok(home.join(".cache/margay"))
}

/// Why a file is no entry for us.
#[derive(Debug)]
enum Refusal {
    Absent,
    /// It may be well, but is not ours to use or to remove.
    Foreign(String),
    Broken(&'static str),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        match error.kind() {
            io::ErrorKind::NotFound => Refusal::Absent,
            _ => Refusal::Foreign(error.to_string()),
        }
    }
}

/// What an entry holds, once it is verified. An entry larger than the cache may be is none.
fn read(path: &Path, key: &Key, limit: u64) -> Result<Vec<u8>, Refusal> {
    // Not through a link, nor a pipe that would make the caller wait.
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Refusal::Foreign("no file".into()));
    }
    check(&metadata).map_err(|why| Refusal::Foreign(why.into()))?;
    let len = metadata.len();
    if len < HEADER as u64 || len > limit {
        return Err(Refusal::Broken("its length is wrong"));
    }
    // No more than it had, even if it grows meanwhile.
    let mut bytes = Vec::with_capacity(len as usize);
    (&mut file).take(len).read_to_end(&mut bytes)?;
    let Some((found, code)) = bytes.split_at_checked(HEADER) else {
        return Err(Refusal::Broken("its length is wrong"));
    };
    if found != header(key, code) {
        return Err(Refusal::Broken("its header or hash is wrong"));
    }
    note_use(&file, &metadata);
    bytes.drain(..HEADER);
    Ok(bytes)
}

/// Entries that are used stay longest.
fn note_use(file: &File, metadata: &Metadata) {
    let now = SystemTime::now();
    let noted = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    // A time in the future is wrong, too.
    if now.duration_since(noted).map_or(true, |age| age > EXACTNESS) {
        let _ = file.set_modified(now);
    }
}

/// What an entry with this key and code starts with.
fn header(key: &Key, code: &[u8]) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..40].copy_from_slice(key);
    header[40..48].copy_from_slice(&(code.len() as u64).to_le_bytes());
    let hash = Sha256::new().chain_update(&header[..48]).chain_update(code).finalize();
    header[48..].copy_from_slice(&hash);
    header
}

/// Fails for what others own or may write to.
fn check(metadata: &Metadata) -> Result<(), &'static str> {
    if metadata.uid() != user() {
        Err("another user owns it")
    } else if metadata.mode() & 0o022 != 0 {
        Err("others may write to it")
    } else {
        Ok(())
    }
}

fn user() -> u32 {
    // SAFETY: asks, and cannot fail.
    unsafe { libc::geteuid() }
}

fn is_entry(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_suffix(SUFFIX));
    digits.is_some_and(|digits| digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// A cache in a folder of its own, which goes with it.
    struct Fresh(Cache);

    impl Fresh {
        fn new(limit: u64) -> Fresh {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let name = format!(
                "margay-cache-{}-{}",
                std::process::id(),
                COUNT.fetch_add(1, Ordering::Relaxed)
            );
            let folder = std::env::temp_dir().join(name).join("a/b");
            Fresh(Cache::open(&CacheFolder::At(folder), limit).unwrap())
        }

        fn top(&self) -> &Path {
            self.0.folder.ancestors().nth(2).unwrap()
        }

        fn files(&self) -> Vec<String> {
            let files = fs::read_dir(&self.0.folder).unwrap();
            files
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect()
        }
    }

    impl Drop for Fresh {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(self.top());
        }
    }

    fn age(path: &Path, by: Duration) {
        let file = File::open(path).unwrap();
        file.set_modified(SystemTime::now() - by).unwrap();
    }

    /// A key after which nobody sweeps.
    fn quiet_key(number: u32) -> Key {
        let mut key = key(&[&number.to_le_bytes()]);
        key[31] = 1;
        key
    }

    #[test]
    fn parts_make_the_key() {
        assert_eq!(key(&[b"a", b"bc"]), key(&[b"a", b"bc"]));
        for other in [&[b"ab" as &[u8], b"c"] as &[&[u8]], &[b"abc"], &[b"a", b"bc", b""], &[]] {
            assert_ne!(key(&[b"a", b"bc"]), key(other));
        }
    }

    #[test]
    fn what_is_put_is_got_and_nothing_else() {
        let cache = Fresh::new(1 << 20);
        let (a, b) = (quiet_key(1), quiet_key(2));
        assert_eq!(cache.0.get(&a), None);
        cache.0.put(&a, b"code");
        cache.0.put(&b, b"");
        assert_eq!(cache.0.get(&a).unwrap(), b"code");
        assert_eq!(cache.0.get(&b).unwrap(), b"");
        cache.0.put(&a, b"other code");
        assert_eq!(cache.0.get(&a).unwrap(), b"other code");
        assert_eq!(cache.files().len(), 2);
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&cache.0.folder), mode(&cache.0.path(&a))), (0o700, 0o600));
    }

    #[test]
    fn every_broken_entry_is_removed() {
        let cache = Fresh::new(1 << 20);
        let key = quiet_key(1);
        let path = cache.0.path(&key);
        cache.0.put(&key, b"some code");
        let whole = fs::read(&path).unwrap();
        let mut broken: Vec<Vec<u8>> = (0..whole.len()).map(|len| whole[..len].to_vec()).collect();
        broken.push([&whole[..], b"!"].concat());
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            broken.push(damaged);
        }
        // Another kernel's, under this name.
        broken.push([&header(&quiet_key(2), b"some code")[..], b"some code"].concat());
        for bytes in broken {
            fs::write(&path, &bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            assert_eq!(cache.0.get(&key), None);
            assert!(!path.exists(), "{bytes:?}");
        }
        cache.0.put(&key, b"some code");
        assert!(cache.0.get(&key).is_some());
    }

    #[test]
    fn what_others_may_write_to_is_refused() {
        let cache = Fresh::new(1 << 20);
        let key = quiet_key(1);
        let path = cache.0.path(&key);
        cache.0.put(&key, b"code");
        for mode in [0o622, 0o620, 0o602] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(cache.0.get(&key), None);
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(cache.0.get(&key).is_some());
        let real = cache.top().join("real");
        fs::rename(&path, &real).unwrap();
        symlink(&real, &path).unwrap();
        assert_eq!(cache.0.get(&key), None);

        let open = |folder: &Path| Cache::open(&CacheFolder::At(folder.into()), 1 << 20).map(|_| ());
        assert_eq!(open(&cache.0.folder), Ok(()));
        for mode in [0o777, 0o1777, 0o770] {
            fs::set_permissions(&cache.0.folder, fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                open(&cache.0.folder).unwrap_err().contains("others may write"),
                "{mode:o}"
            );
        }
        assert!(open(Path::new("/proc/no/such")).is_err());
        assert!(open(&real).is_err());
        // Root owns it.
        if user() != 0 {
            assert!(open(Path::new("/usr")).unwrap_err().contains("another user"));
        }
    }

    #[test]
    fn where_it_is() {
        let home = std::env::temp_dir().join(format!("margay-home-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let usual = |caches: Option<&str>, home: &Path| usual_folder(caches.map(PathBuf::from), Some(home.into()));
        assert_eq!(usual(Some("/caches"), &home), Ok("/caches/margay".into()));
        assert_eq!(usual(Some("not/absolute"), &home), Ok(home.join(".cache/margay")));
        assert_eq!(usual(None, &home), Ok(home.join(".cache/margay")));
        assert!(usual(None, Path::new("/nowhere")).is_err());
        assert!(usual_folder(None, None).is_err());
        if user() == 0 {
            std::os::unix::fs::chown(&home, Some(12345), None).unwrap();
            assert!(usual(None, &home).unwrap_err().contains("another user"));
        }
        fs::remove_dir(&home).unwrap();
        assert!(Cache::open(&CacheFolder::Off, 1).is_err());
        assert!(Cache::open(&CacheFolder::At(home), 0).is_err());
    }

    #[test]
    fn the_longest_unused_make_room() {
        let cache = Fresh::new(10_000);
        let code = [7; 1000];
        for number in 0..8 {
            cache.0.put(&quiet_key(number), &code);
            let path = cache.0.path(&quiet_key(number));
            age(&path, Duration::from_secs(10_000 - u64::from(number)));
        }
        // Within the limit nothing goes.
        cache.0.sweep();
        assert_eq!(cache.files().len(), 8);
        // The first one is used again.
        assert!(cache.0.get(&quiet_key(0)).is_some());
        for number in 8..10 {
            cache.0.put(&quiet_key(number), &code);
        }
        let (strange, abandoned) = (cache.0.folder.join("strange"), cache.0.folder.join("1-2-3.mjit-new"));
        let current = cache.0.folder.join("4-5-6.mjit-new");
        for file in [&strange, &abandoned, &current] {
            fs::write(file, [0; 20_000]).unwrap();
        }
        age(&abandoned, Duration::from_secs(7200));
        cache.0.sweep();
        let there: Vec<u32> = (0..10)
            .filter(|number| cache.0.path(&quiet_key(*number)).exists())
            .collect();
        assert_eq!(there, [0, 5, 6, 7, 8, 9]);
        assert!(strange.exists() && current.exists() && !abandoned.exists());
        // Larger than all together.
        cache.0.put(&quiet_key(20), &[0; 10_000]);
        assert!(!cache.0.path(&quiet_key(20)).exists());
    }

    #[test]
    fn writes_keep_the_limit_now_and_then() {
        let cache = Fresh::new(100_000);
        for number in 0..2000u32 {
            cache.0.put(&key(&[&number.to_le_bytes()]), &[1; 420]);
        }
        // 500 bytes each, a sweep about every sixteen.
        let entries = cache.files().len();
        assert!((100..400).contains(&entries), "{entries}");
    }

    #[test]
    fn many_at_once_do_each_other_no_harm() {
        let cache = Fresh::new(40_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                // As another process: with nothing in common but the folder.
                let cache = Cache {
                    folder: cache.0.folder.clone(),
                    ..cache.0
                };
                scope.spawn(move || {
                    for round in 0..2000u32 {
                        let number = round % 50;
                        let key = key(&[&number.to_le_bytes()]);
                        match cache.get(&key) {
                            Some(code) => assert_eq!(code, vec![number as u8; 1000]),
                            None => cache.put(&key, &[number as u8; 1000]),
                        }
                    }
                });
            }
        });
        assert!(cache.files().iter().all(|name| is_entry(OsStr::new(name))));
    }

    #[test]
    fn a_full_disk_is_no_harm() {
        let cache = Fresh::new(1 << 20);
        // A folder that is gone is as good as one that is full, and easier to have.
        fs::remove_dir_all(&cache.0.folder).unwrap();
        cache.0.put(&key(&[]), b"code");
        cache.0.sweep();
        assert_eq!(cache.0.get(&key(&[])), None);
    }
}
