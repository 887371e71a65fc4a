//! What a run lacked whose import failed: which package has the module, and whether it has a build
//! that the guest can load.

use super::execution::{Execution, Outcome};

/// A module that a run could not import, and what has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingModule {
    /// A package has it, which the host has not given.
    Package {
        /// The module, such as `sklearn`.
        module: String,
        /// The package, such as `scikit-learn`; the module's own name unless another is known.
        package: String,
    },
    /// Its package has no wheel that the guest can load: it has native code without a build for
    /// WebAssembly, or needs a package that has, or there are only its sources.
    NoWheel {
        /// The package, such as `torch`.
        package: String,
    },
    /// It installs packages, which code cannot do: the host gives them.
    Installer {
        /// The module, such as `pip`.
        module: String,
    },
}

/// Modules whose packages have other names.
const PACKAGES: [(&str, &str); 73] = [
    ("Bio", "biopython"),
    ("BioSQL", "biopython"),
    ("Crypto", "pycryptodome"),
    ("Cryptodome", "pycryptodomex"),
    ("IPython", "ipython"),
    ("MySQLdb", "mysqlclient"),
    ("OpenSSL", "pyopenssl"),
    ("PIL", "pillow"),
    ("PhiSpyModules", "phispy"),
    ("PhiSpyRepeatFinder", "phispy"),
    ("_argon2_cffi_bindings", "argon2-cffi-bindings"),
    ("argon2", "argon2-cffi"),
    ("attr", "attrs"),
    ("audioop", "audioop-lts"),
    ("barcode", "python-barcode"),
    ("bigtests", "screed"),
    ("bilby_cython", "bilby.cython"),
    ("bs4", "beautifulsoup4"),
    ("cv2", "opencv-python"),
    ("cvxpy", "cvxpy-base"),
    ("dateutil", "python-dateutil"),
    ("dns", "dnspython"),
    ("docx", "python-docx"),
    ("dotenv", "python-dotenv"),
    ("erfa", "pyerfa"),
    ("faiss", "faiss-cpu"),
    ("fitz", "pymupdf"),
    ("flirt", "python-flirt"),
    ("fpdf", "fpdf2"),
    ("frontmatter", "python-frontmatter"),
    ("git", "gitpython"),
    ("github", "pygithub"),
    ("gridfs", "pymongo"),
    ("grpc", "grpcio"),
    ("imblearn", "imbalanced-learn"),
    ("isympy", "sympy"),
    ("jose", "python-jose"),
    ("jwt", "pyjwt"),
    ("kafka", "kafka-python"),
    ("lakers", "lakers-python"),
    ("ldap", "python-ldap"),
    ("magic", "python-magic"),
    ("mpl_toolkits", "matplotlib"),
    ("multipart", "python-multipart"),
    ("mypyc", "mypy"),
    ("nacl", "pynacl"),
    ("opentelemetry", "opentelemetry-api"),
    ("pkg_resources", "setuptools"),
    ("pptx", "python-pptx"),
    ("psycopg", "psycopg[binary]"),
    ("psycopg2", "psycopg2-binary"),
    ("pwiz", "peewee"),
    ("pygame", "pygame-ce"),
    ("pylab", "matplotlib"),
    ("pysat", "python-sat"),
    ("pywt", "pywavelets"),
    ("rpds", "rpds-py"),
    ("ruamel", "ruamel.yaml"),
    ("serial", "pyserial"),
    ("shapefile", "pyshp"),
    ("sisl_toolbox", "sisl"),
    ("skimage", "scikit-image"),
    ("sklearn", "scikit-learn"),
    ("slugify", "python-slugify"),
    ("socks", "pysocks"),
    ("taglib", "pytaglib"),
    ("telegram", "python-telegram-bot"),
    ("tiktoken_ext", "tiktoken"),
    ("tlz", "toolz"),
    ("unix_timezones", "pyodide-unix-timezones"),
    ("xdist", "pytest-xdist"),
    ("yaml", "pyyaml"),
    ("z3", "z3-solver"),
];

/// Packages without a wheel for the guest: those of which `docs/concepts/packages.md` says so, and
/// others like them.
const NO_WHEEL: [&str; 38] = [
    "cupy",
    "faiss-cpu",
    "fastuuid",
    "greenlet",
    "grpcio",
    "jax",
    "jaxlib",
    "keras",
    "kivy",
    "langdetect",
    "levenshtein",
    "llvmlite",
    "numba",
    "onnxruntime",
    "ortools",
    "playwright",
    "polars-lts-cpu",
    "psutil",
    "psycopg2-binary",
    "psycopg[binary]",
    "pymupdf",
    "pyopencl",
    "pyqt5",
    "pyqt6",
    "pyside6",
    "python-ldap",
    "rapidfuzz",
    "ray",
    "spacy",
    "tensorflow",
    "tokenizers",
    "torch",
    "torchaudio",
    "torchvision",
    "tornado",
    "triton",
    "uvloop",
    "vllm",
];

/// Modules that install packages.
const INSTALLERS: [&str; 4] = ["conda", "micropip", "pip", "uv"];

/// Modules that no package has: parts of the standard library that only other systems or older
/// versions of Python have, and `google`, which many packages share.
const WITHOUT_PACKAGE: [&str; 27] = [
    "aifc",
    "asynchat",
    "asyncore",
    "cgi",
    "cgitb",
    "chunk",
    "crypt",
    "distutils",
    "google",
    "grp",
    "imghdr",
    "imp",
    "msvcrt",
    "nis",
    "nntplib",
    "nt",
    "pipes",
    "pwd",
    "resource",
    "smtpd",
    "sndhdr",
    "spwd",
    "syslog",
    "telnetlib",
    "winreg",
    "winsound",
    "xdrlib",
];

impl MissingModule {
    /// Returns what has a module that no package of the session has, if anything may.
    #[must_use]
    pub fn of(module: &str) -> Option<Self> {
        if WITHOUT_PACKAGE.contains(&module) {
            return None;
        }
        if INSTALLERS.contains(&module) {
            return Some(Self::Installer { module: module.to_owned() });
        }
        let known = PACKAGES.iter().find(|(other, _)| *other == module);
        let package = known.map_or_else(|| module.to_owned(), |(_, package)| (*package).to_owned());
        let normalised = package.to_ascii_lowercase().replace('_', "-");
        Some(if NO_WHEEL.contains(&&*normalised) {
            Self::NoWheel { package: normalised }
        } else {
            Self::Package { module: module.to_owned(), package }
        })
    }
}

impl Execution {
    /// Returns what the run lacked, if it ended because a module is missing that a package may
    /// have. The guest has said which: treat the names as its other texts. They are plain names.
    #[must_use]
    pub fn missing_module(&self) -> Option<MissingModule> {
        let Outcome::Raised(exception) = self.outcome() else { return None };
        if exception.type_name != "ModuleNotFoundError" {
            return None;
        }
        // A module that a loaded package lacks has a dotted name.
        let named = exception.message.strip_prefix("No module named '")?.strip_suffix('\'')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_name = !named.is_empty() && named.len() <= 100 && named.chars().all(is_plain);
        is_name.then(|| MissingModule::of(named)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_of_a_module_is_known_where_it_has_another_name() {
        let package = |module: &str, package: &str| {
            Some(MissingModule::Package { module: module.to_owned(), package: package.to_owned() })
        };
        assert_eq!(MissingModule::of("PIL"), package("PIL", "pillow"));
        assert_eq!(MissingModule::of("requests"), package("requests", "requests"));
        let torch = MissingModule::NoWheel { package: "torch".to_owned() };
        assert_eq!(MissingModule::of("torch"), Some(torch));
        let fitz = MissingModule::NoWheel { package: "pymupdf".to_owned() };
        assert_eq!(MissingModule::of("fitz"), Some(fitz));
        let pip = MissingModule::Installer { module: "pip".to_owned() };
        assert_eq!(MissingModule::of("pip"), Some(pip));
        assert_eq!(MissingModule::of("pwd"), None);
    }

    #[test]
    fn each_module_is_listed_once() {
        assert!(PACKAGES.is_sorted_by(|one, next| one.0 < next.0));
        assert!(NO_WHEEL.is_sorted_by(|one, next| one < next));
        assert!(WITHOUT_PACKAGE.is_sorted_by(|one, next| one < next));
        for (module, package) in PACKAGES {
            assert_ne!(module, package);
        }
    }
}
