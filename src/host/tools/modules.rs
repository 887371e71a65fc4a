//! The modules of tools in one session: loads them when the guest asks, and answers what it asks
//! about them. The guest asks by calls whose names no tool can have.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use super::Tool;
use super::module::{ModuleSet, ToolModule};
use crate::data::tool::search::SearchIndex;
use crate::data::tool::{Param, ToolError, ToolSpec, TypeHint};
use crate::data::value::Value;
use crate::protocol::codec;
use crate::support::lock::lock;
use futures_util::future::join_all;

/// The question that is asked of all modules.
const SEARCH: &str = "?search";

/// The maximum number of tools that a search finds.
const MAX_FOUND: i64 = 100;

/// The modules of a session.
pub(crate) struct Modules {
    modules: Vec<SessionModule>,
    index: Mutex<Option<Arc<Index>>>,
}

struct SessionModule {
    module: ToolModule,
    loaded: Mutex<Option<Loaded>>,
    /// Locked while the tools are loaded.
    loading: tokio::sync::Mutex<()>,
}

/// The tools of a module, and which version of them.
struct Loaded {
    catalogue: Arc<Catalogue>,
    version: u64,
}

/// The tools of a module that is loaded. Their specifications have their whole names.
struct Catalogue {
    tools: Vec<Tool>,
    places: HashMap<String, usize>,
}

/// The tools of all modules that were loaded when it was made.
struct Index {
    search: SearchIndex,
    /// The tools of each module that it was made of; `None` if it was not loaded.
    catalogues: Vec<Option<Arc<Catalogue>>>,
    ranges: Vec<Range<usize>>,
    specs: Vec<(usize, Arc<ToolSpec>)>,
}

/// What the guest asks about one module.
#[derive(Clone, Copy)]
enum Question {
    /// The names of its tools.
    Names,
    /// One tool, as the guest's glue defines it.
    Tool,
    /// The signature and the first line of the documentation of each tool.
    Help,
}

impl Modules {
    pub(crate) fn new(set: &ModuleSet) -> Self {
        let session = |module: &ToolModule| SessionModule {
            module: module.clone(),
            loaded: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
        };
        Self { modules: set.modules.iter().map(session).collect(), index: Mutex::default() }
    }

    /// Returns the tool of this whole name, if its module is loaded.
    pub(super) fn tool(&self, name: &str) -> Option<Tool> {
        let (module, tool) = name.split_once('.')?;
        let catalogue = self.position(module).and_then(|at| self.modules.get(at)?.known())?;
        catalogue.get(tool).cloned()
    }

    /// Returns `true` if the tool of this whole name may be in a module that is not loaded yet, as
    /// in a session that was saved with functions of the module.
    pub(super) fn may_load(&self, name: &str) -> bool {
        let module = name.split_once('.').and_then(|(module, _)| self.position(module));
        module.and_then(|at| self.modules.get(at)).is_some_and(|one| one.known().is_none())
    }

    /// Returns the tool of this whole name, and loads its module for that.
    pub(super) async fn load(&self, name: &str) -> Result<Option<Tool>, ToolError> {
        let Some((module, tool)) = name.split_once('.') else { return Ok(None) };
        let Some(module) = self.position(module).and_then(|at| self.modules.get(at)) else {
            return Ok(None);
        };
        Ok(module.load().await?.get(tool).cloned())
    }

    /// Returns what answers a question, as a tool.
    pub(super) fn question(self: &Arc<Self>, name: &str) -> Option<Tool> {
        let modules = Arc::clone(self);
        if name == SEARCH && !self.modules.is_empty() {
            let spec = ToolSpec::new("search")
                .param(Param::new("query").hint(TypeHint::Str))
                .param(Param::new("server").hint(TypeHint::Str.or_none()))
                .param(Param::new("limit").hint(TypeHint::Int));
            return Some(Tool::question(spec, move |arguments| {
                let modules = Arc::clone(&modules);
                async move { modules.search(&arguments).await }
            }));
        }
        let (module, question) = name.split_once(".?")?;
        let question = match question {
            "names" => Question::Names,
            "tool" => Question::Tool,
            "help" => Question::Help,
            _ => return None,
        };
        let at = self.position(module)?;
        let spec = match question {
            Question::Names | Question::Help => ToolSpec::new(module),
            Question::Tool => ToolSpec::new(module).param(Param::new("name").hint(TypeHint::Str)),
        };
        Some(Tool::question(spec, move |arguments| {
            let modules = Arc::clone(&modules);
            async move { modules.answer(at, question, &arguments).await }
        }))
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.modules.iter().position(|one| one.module.name() == name)
    }

    async fn answer(
        &self,
        at: usize,
        question: Question,
        arguments: &Value,
    ) -> Result<Value, ToolError> {
        let Some(module) = self.modules.get(at) else { return Ok(Value::None) };
        let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
        let catalogue = match question {
            Question::Tool => match module.load().await? {
                known if known.get(name).is_some() => known,
                _ => module.load_newest().await?,
            },
            Question::Names | Question::Help => module.load_newest().await?,
        };
        let each = |value: &dyn Fn(&ToolSpec) -> Value| {
            Value::List(catalogue.tools.iter().map(|tool| value(tool.spec())).collect())
        };
        Ok(match question {
            Question::Names => each(&|spec| short_name(spec).into()),
            Question::Help => each(&|spec| {
                let signature = spec.signature(short_name(spec)).to_string();
                Value::List(vec![signature.into(), spec.doc.trim().lines().next().into()])
            }),
            Question::Tool => {
                let tool = catalogue.get(name);
                tool.map_or(Value::None, |tool| codec::function(tool.spec(), name))
            }
        })
    }

    /// Finds tools in all modules, or in one. A module that cannot be loaded is left out, if
    /// another one can.
    async fn search(&self, arguments: &Value) -> Result<Value, ToolError> {
        let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default();
        let limit = match arguments.get("limit") {
            Some(Value::Int(limit)) => (*limit).clamp(0, MAX_FOUND),
            _ => MAX_FOUND,
        };
        let limit = usize::try_from(limit).unwrap_or_default();
        let server = match arguments.get("server").and_then(Value::as_str) {
            Some(server) => Some(self.position(server).ok_or_else(|| self.unknown(server))?),
            None => None,
        };
        if let Some(module) = server.and_then(|at| self.modules.get(at)) {
            module.load_newest().await?;
        } else {
            let loaded = join_all(self.modules.iter().map(SessionModule::load_newest)).await;
            if loaded.iter().all(Result::is_err) {
                loaded.into_iter().collect::<Result<Vec<_>, _>>()?;
            }
        }
        let index = self.index();
        let within = match server.and_then(|at| index.ranges.get(at)) {
            Some(range) => range.clone(),
            None => 0..index.specs.len(),
        };
        let found = index.search.find(query, within, limit);
        let shown = found.into_iter().filter_map(|at| index.specs.get(at)).map(|(module, spec)| {
            let module = self.modules.get(*module).map(|one| one.module.guest_name());
            let name = format!("{}.{}", module.unwrap_or_default(), short_name(spec));
            let signature = spec.signature(&name).to_string();
            Value::dict([("signature", signature), ("doc", spec.docstring()), ("name", name)])
        });
        Ok(Value::List(shown.collect()))
    }

    fn unknown(&self, server: &str) -> ToolError {
        let names: Vec<&str> = self.modules.iter().map(|one| one.module.name()).collect();
        let shown: String = server.chars().take(100).collect();
        let message = format!("there is no server '{shown}', there are {}", names.join(", "));
        ToolError::new("ValueError", message)
    }

    /// Returns the index of the modules that are loaded now.
    fn index(&self) -> Arc<Index> {
        let mut kept = lock(&self.index);
        let catalogues: Vec<_> = self.modules.iter().map(SessionModule::known).collect();
        let is_current = |index: &&Arc<Index>| {
            let mut pairs = index.catalogues.iter().zip(&catalogues);
            pairs.all(|(indexed, known)| {
                indexed.as_ref().map(Arc::as_ptr) == known.as_ref().map(Arc::as_ptr)
            })
        };
        if let Some(index) = kept.as_ref().filter(is_current) {
            return Arc::clone(index);
        }
        let mut specs = Vec::new();
        let mut ranges = Vec::with_capacity(self.modules.len());
        for (at, catalogue) in catalogues.iter().enumerate() {
            let start = specs.len();
            let tools = catalogue.iter().flat_map(|catalogue| &catalogue.tools);
            specs.extend(tools.map(|tool| (at, tool.shared_spec())));
            ranges.push(start..specs.len());
        }
        let search = SearchIndex::new(specs.iter().map(|(_, spec)| &**spec));
        Arc::clone(kept.insert(Arc::new(Index { search, catalogues, ranges, specs })))
    }
}

impl SessionModule {
    /// Returns the tools, if they are loaded.
    fn known(&self) -> Option<Arc<Catalogue>> {
        lock(&self.loaded).as_ref().map(|loaded| Arc::clone(&loaded.catalogue))
    }

    async fn load(&self) -> Result<Arc<Catalogue>, ToolError> {
        match self.known() {
            Some(known) => Ok(known),
            None => self.load_newest().await,
        }
    }

    /// Loads the tools, unless this version of them is loaded.
    async fn load_newest(&self) -> Result<Arc<Catalogue>, ToolError> {
        let _loading = self.loading.lock().await;
        let version = self.module.current_version().await;
        if let Some(loaded) = lock(&self.loaded).as_ref().filter(|one| one.version == version) {
            return Ok(Arc::clone(&loaded.catalogue));
        }
        let tools = (self.module.provider)().await?;
        let catalogue = Arc::new(Catalogue::new(self.module.name(), tools)?);
        *lock(&self.loaded) = Some(Loaded { catalogue: Arc::clone(&catalogue), version });
        Ok(catalogue)
    }
}

impl Catalogue {
    fn new(module: &str, tools: Vec<Tool>) -> Result<Self, ToolError> {
        let refuse = |reason: String| {
            let message = format!("the module `{module}` cannot be used: {reason}");
            Err(ToolError::new("ImportError", message))
        };
        let mut places = HashMap::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            if let Err(error) = tool.validate() {
                return refuse(error.to_string());
            }
            let name = tool.spec().name();
            if places.insert(name.to_owned(), at).is_some() {
                return refuse(format!("there are two tools of the name `{name}`"));
            }
        }
        let tools = tools.into_iter().map(|tool| tool.in_module(module)).collect();
        Ok(Self { tools, places })
    }

    fn get(&self, name: &str) -> Option<&Tool> {
        self.places.get(name).and_then(|at| self.tools.get(*at))
    }
}

/// Returns the name of a tool within its module.
fn short_name(spec: &ToolSpec) -> &str {
    spec.name.split_once('.').map_or(&*spec.name, |(_, name)| name)
}
